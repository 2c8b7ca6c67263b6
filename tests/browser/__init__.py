"""Pages of the admin in a real browser: Debian's Chromium, driven by Playwright.

To put a page under it, write `tests/browser/test_YOURS.py`:

    from tests.browser.looks import every_look

    @every_look
    def test_the_list_of_orders_is_for_everybody(browse, superuser):
        page = browse(superuser)            # a tab in which this user is logged in

        page.goto("/admin/shop/order/")

        # axe-core finds nothing serious, and MCP_TEST_SCREENSHOTS may name a folder for pictures.
        page.check_accessible("orders")

- `every_look` runs a test in the stock admin (light, dark, in a narrow window) and in a skin.
  Leave it out where looks say nothing: the test runs once then, light.
- `browse(user, **options)` may be called for several users in one test; options are those of
  Playwright's `new_context`. The result is Playwright's `Page` and more: `check_accessible(name)`,
  `tab_to(role, name)`, `enter(role, name)`, `write_over(name, text)`, `press(keys)`,
  `expect(locator)`, `screenshot_to(name)`. Whatever it gives runs in a thread of Playwright's
  own, so the test itself may use the ORM and `mcp_django.testing.Client` in between.
- A tab stays open for later tests that ask for one like it, without cookies, storage and page.
  Its cache stays: do not use Playwright's `route`, which switches it off.
- Each test fails at its end on any error in the console, any exception in a script and any
  request that leaves this machine. `page.faults` has them; a test that wants one clears it.
- The server is pytest-django's `live_server` (own threads, this process), so the database is
  real and flushed after each test. Wait with `page.expect(locator).to_...`, never with time.
"""
