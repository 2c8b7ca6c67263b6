"""A tab of the browser, with what tests of pages ask of it."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.browser.looks import Look
from tests.browser.playwright_thread import PlaywrightThread

#: Tabs until a control must have been reached.
FAR = 300

#: Where a tab is between tests: text, in which no script runs. What has another origin than a page
#: of Django, or lacks its Cross-Origin-Opener-Policy, would cost two processes each time.
PLAIN = "/admin/jsi18n/"

# The last tab of a page leads to the browser's own controls: whoever comes there twice has been
# everywhere. A script may have replaced the control meanwhile.
WHERE_IS_FOCUS = """control => {
  if (!document.hasFocus()) return "outside";
  if (!control.isConnected) return "gone";
  return control === document.activeElement ? "here" : "elsewhere";
}"""

# The focus of a keyboard must be seen: something about the control or its surroundings differs.
IS_FOCUS_SEEN = """element => {
  const looks = () => [element, element.parentElement, element.labels?.[0]].map(one => {
    const style = one && getComputedStyle(one);
    return one && [style.outline, style.boxShadow, style.border, style.backgroundColor,
                   style.textDecoration, style.color].join();
  }).join();
  const focused = looks();
  element.blur();
  const blurred = looks();
  element.focus({focusVisible: true, preventScroll: true});
  return focused !== blurred;
}"""


# The impact of a rule is that of whatever it finds, so the others need not run.
GRAVE_FINDINGS = """async known => {
  const isGrave = ({impact}) => ["serious", "critical"].includes(impact);
  const others = axe._audit.rules.filter(rule => rule.impact && !isGrave(rule));
  const {violations} = await axe.run({
    resultTypes: ["violations"],
    rules: Object.fromEntries(others.map(({id}) => [id, {enabled: false}])),
  });
  return violations.filter(isGrave).flatMap(
    ({id, nodes}) => nodes
      .filter(node => !document.querySelector(node.target[0])?.matches(known[id] ?? "nothing"))
      .map(node => `${id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""


class Tab:
    """Playwright's Page and more. It has the methods of a page, and runs them in its thread."""

    def __init__(self, thread: PlaywrightThread, context: Any, look: Look) -> None:
        self.look = look
        #: What went wrong in the browser so far.
        self.faults: list[str] = []
        self._thread = thread
        self._page = context.new_page()
        # Functions: of a method, Playwright would ask the object for an attribute of its own.
        self._page.on("console", lambda message: self._hear(message))
        self._page.on("pageerror", lambda error: self.faults.append(str(error)))
        self._page.on("requestfailed", lambda request: self._hear_of_failure(request))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)

    # These two are called in Playwright's thread.

    def _hear(self, message: Any) -> None:
        url = message.location.get("url", "")
        # Chromium asks for it by itself, and the site of the tests has none.
        if message.type == "error" and not url.endswith("/favicon.ico"):
            self.faults.append(f"{message.text} ({url})")

    def _hear_of_failure(self, request: Any) -> None:
        # A page that is left takes its requests with it.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"{request.url}: {request.failure}")

    def forget(self) -> None:
        """Be as new for another test: no page, no cookies, no storage, no mouse over anything."""
        self._page.goto(PLAIN)
        self._page.context.clear_cookies()
        self._page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self._page.mouse.move(-1, -1)
        self.faults = []

    def expect(self, locator: Any) -> Any:
        """Playwright's `expect`: assertions that wait."""
        from playwright.sync_api import expect

        return self._thread.run(expect, locator)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._page.keyboard.press(key)

    def tab_to(self, role: str, name: str) -> Any:
        """Go to a control by the keyboard alone. Fails where it cannot be reached so, or where
        one does not see that it was."""
        wanted = self._page.get_by_role(role, name=name, exact=True)
        wanted.first.wait_for()
        assert wanted.count() == 1, f"{wanted.count()} times {role} {name!r}"
        # Not the locator: it would look for the name in the whole page at each step.
        control, rounds = wanted.element_handle(), 0
        for _ in range(FAR):
            where = control.evaluate(WHERE_IS_FOCUS)
            if where == "here":
                assert wanted.evaluate(IS_FOCUS_SEEN), f"{name!r} has the focus, unseen"
                return wanted
            if where == "gone":
                control = wanted.element_handle()
            rounds += where == "outside"
            if rounds == 2:
                break
            self._page.keyboard.press("Tab")
        raise AssertionError(f"No tab leads to {role} {name!r}")

    def enter(self, role: str, name: str) -> None:
        """Use a control by the keyboard alone."""
        self.tab_to(role, name)
        self.press("Enter")

    def write_over(self, name: str, text: str) -> None:
        """Replace what stands in a box by the keyboard alone."""
        self.tab_to("textbox", name)
        self.press("Control+a")
        self._page.keyboard.type(text)

    def check_accessible(self, name: str = "") -> None:
        """axe-core has no serious finding, but those that are known of markup that is not ours.
        With a name, a picture of the page is kept first."""
        if name:
            self.screenshot_to(name)
        script = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
        # Not by a tag: a page's policy could forbid that.
        self._page.evaluate(script)
        found = self._page.evaluate(GRAVE_FINDINGS, self.look.known)
        assert not found, "\n".join([self._page.url, *found])

    def screenshot_to(self, name: str) -> None:
        """Keep a picture of the whole page, in the folder that MCP_TEST_SCREENSHOTS names."""
        if folder := os.environ.get("MCP_TEST_SCREENSHOTS"):
            path = Path(folder) / f"{name}-{self.look.name}.png"
            self._page.screenshot(path=path, full_page=True)
