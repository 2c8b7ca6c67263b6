from __future__ import annotations

import io
import threading

import django
import pytest
from django.core import mail
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.base.base import NO_DB_ALIAS
from PIL import Image

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.dry_runs import dry_run
from tests.databases import VENDOR
from tests.library.models import Author, Book, Copy, Loan
from tests.workshop.models import Thing

pytestmark = [pytest.mark.django_db, pytest.mark.database]

LOCMEM = "django.core.mail.backends.locmem.EmailBackend"
MEMORY = "django.core.files.storage.InMemoryStorage"


@pytest.fixture(autouse=True)
def _library_site(settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": ["library"]}
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": LOCMEM}}
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": MEMORY}}


@pytest.fixture
def ann():
    return Author.objects.create(name="Ann", country="FR", salary=4711)


@pytest.fixture
def book(ann):
    return Book.objects.create(title="Emma", author=ann, secret_note="s3cr3t")


def tried(work):
    with dry_run(Book):
        work()


def rows():
    """All that there is, column by column."""
    return {model: list(model.objects.order_by("pk").values()) for model in (Author, Book, Copy)}


# What is held back


def write(*recipients, kind=mail.EmailMessage):
    return kind("Hello", "body", "a@example.com", list(recipients))


class OwnMessage(mail.EmailMultiAlternatives):
    """As packages for mail services have them."""

    def send(self, *args, **kwargs):
        return super().send(*args, **kwargs)


def send_one():
    return write("b@example.com").send()


@pytest.mark.parametrize(
    ("send", "count"),
    [
        (send_one, 1),
        (lambda: mail.send_mail("Hello", "body", "a@example.com", ["b@example.com"]), 1),
        (lambda: write("b@example.com", kind=OwnMessage).send(), 1),
        (lambda: write().send(), 0),
    ],
    ids=["message", "function", "own message", "to nobody"],
)
def test_mail_is_not_sent_and_reported_as_if_it_were(send, count):
    reported = []

    tried(lambda: reported.append(send()))

    assert mail.outbox == []
    assert reported == [count]
    assert send() == count == len(mail.outbox)


def test_what_goes_past_the_three_methods_is_not_held_back():
    def work():
        backend = mail.get_connection() if django.VERSION < (6, 1) else mail.mailers.default
        backend.send_messages([write("b@example.com")])
        default_storage.save("thumbnail.txt", ContentFile(b"small"))

    tried(work)

    assert len(mail.outbox) == 1
    assert default_storage.exists("thumbnail.txt")


def test_caches_are_empty_and_forget_what_they_got(settings):
    own = settings.CACHES["default"]
    settings.CACHES = {"default": own, "more": {**own, "LOCATION": "more"}}
    found = []

    def work():
        for alias in ("default", "more"):
            found.append(caches[alias].get("kept"))
            caches[alias].set("kept", "tried")
            found.append(caches[alias].get("kept"))

    for alias in ("default", "more"):
        caches[alias].set("kept", "own")
    tried(work)
    tried(work)

    assert found == [None, "tried"] * 4
    for alias in ("default", "more"):
        assert caches[alias].get("kept") == "own"
        caches[alias].delete("kept")


def test_other_threads_go_on_sending_and_writing(ann):
    def store():
        Book(scan=ContentFile(b"1", name="t")).scan.save("t", ContentFile(b"1"), save=False)

    def work():
        for job in (send_one, store):
            thread = threading.Thread(target=job)
            thread.start()
            thread.join()

    tried(work)

    assert len(mail.outbox) == 1
    assert default_storage.exists("t")


def test_functions_after_the_commit_do_not_run(ann):
    ran = []

    def work():
        transaction.on_commit(lambda: ran.append(1))
        with transaction.atomic():
            transaction.on_commit(lambda: ran.append(2))

    tried(work)
    assert ran == []


def test_files_of_records_are_stored_in_memory_only_and_can_be_read_there(book):
    book.scan.save("old.txt", ContentFile(b"old"))
    other = Book.objects.create(title="Other", author=book.author)

    def work():
        book.scan.delete()
        assert not book.scan
        book.scan.save("new.txt", ContentFile(b"new"))
        assert (book.scan.size, book.scan.open().read()) == (3, b"new")
        book.scan.save("newer.txt", ContentFile(b"newer"), save=False)
        assert book.scan.open("r").read() == "newer"
        other.scan = ContentFile(b"other", name="old.txt")
        other.save()
        assert other.scan.name != "old.txt"
        assert other.scan.read() == b"other"

    tried(work)

    assert default_storage.listdir("")[1] == ["old.txt"]
    assert default_storage.open("old.txt").read() == b"old"
    assert not Book.objects.get(pk=other.pk).scan


def test_pictures_and_open_files_are_held_as_well(book, tmp_path):
    thing, pixel = Thing(title="T"), io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "PNG")
    (tmp_path / "plain").write_bytes(b"12345")

    def work():
        thing.picture.save("p.png", ContentFile(pixel.getvalue()), save=False)
        assert (thing.picture.width, thing.picture.height) == (1, 1)
        with (tmp_path / "plain").open("rb") as plain:
            book.scan.save("plain.txt", plain)
        assert book.scan.size == 5

    tried(work)

    assert default_storage.listdir("") == ([], [])


# What cannot be tried


def begin_durable():
    with transaction.atomic(durable=True):
        pass


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "manage",
    [
        transaction.commit,
        transaction.rollback,
        lambda: transaction.set_autocommit(True),
        begin_durable,
    ],
    ids=["commit", "rollback", "autocommit", "durable block"],
)
def test_code_with_a_transaction_of_its_own_is_refused_and_nothing_is_changed(book, manage):
    before = rows()

    def work():
        book.delete()
        manage()

    with pytest.raises(ToolError, match=r"it manages its own transaction\. Nothing was changed"):
        tried(work)

    assert rows() == before


def test_records_that_refer_to_nothing_are_refused_in_the_end(book):
    if not connection.features.can_defer_constraint_checks:
        pytest.skip("this database looks at once")

    with pytest.raises(ToolError, match="refer to others that are not there"):
        tried(lambda: Book.objects.update(author_id=10_000))

    assert Book.objects.get().author_id != 10_000


def commit_past_django():
    with connection.cursor() as cursor:
        cursor.execute("COMMIT")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("swallows", [False, True], ids=["plain", "swallowed"])
def test_a_transaction_that_ended_past_django_is_reported(swallows):
    def work():
        Author.objects.create(name="done")
        commit_past_django()
        if not swallows:
            raise LookupError

    with pytest.raises(ToolError, match="This could not be taken back"):
        tried(work)

    assert Author.objects.get().name == "done"


def test_after_a_failed_statement_that_was_swallowed_all_is_taken_back(book):
    Loan.objects.create(copy=Copy.objects.create(book=book, number=1))

    def work():
        book.title = "x"
        book.save()
        with pytest.raises(IntegrityError), transaction.atomic():
            Copy.objects.create(book=book, number=1)

    tried(work)

    assert Book.objects.get().title == "Emma"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_closed", [False, True], ids=["connected", "closed"])
def test_errors_of_the_work_pass_and_everything_is_taken_back(ann, is_closed):
    def work():
        ann.delete()
        if is_closed:
            connection.close()
        raise IntegrityError("its own")

    with pytest.raises(IntegrityError, match="its own"):
        tried(work)

    assert Author.objects.exists()


def test_there_is_no_dry_run_inside_of_a_dry_run():
    with pytest.raises(RuntimeError, match="inside of a dry run"), dry_run(Book):
        tried(lambda: None)


# Around it


@pytest.fixture
def add_database():
    """Name databases of this site beside its own."""
    names = []

    def add(name, **options):
        connections.settings[name] = {**connections.settings["default"], **options}
        names.append(name)

    yield add
    for name in names:
        connections[name].close()
        del connections[name]
        del connections.settings[name]


def test_a_database_that_is_down_and_not_needed_does_not_matter(add_database, book):
    add_database(NO_DB_ALIAS, NAME="/nowhere/at/all", HOST="127.0.0.1", PORT="1", OPTIONS={})

    tried(book.delete)

    assert Book.objects.exists()
    with pytest.raises(OperationalError):
        tried(lambda: Author.objects.using(NO_DB_ALIAS).update(name="x"))


def test_a_database_that_is_none_does_not_matter(add_database, ann):
    add_database("empty", ENGINE="django.db.backends.dummy")

    tried(ann.delete)

    assert Author.objects.exists()


@pytest.mark.skipif(VENDOR != "mariadb", reason="others have transactions in every table")
def test_tables_without_transactions_cannot_be_tried(monkeypatch):
    # As with MyISAM as the engine of new tables.
    monkeypatch.setattr(connection.features, "supports_transactions", False)

    with pytest.raises(ToolError, match="has no transactions"):
        tried(lambda: None)
