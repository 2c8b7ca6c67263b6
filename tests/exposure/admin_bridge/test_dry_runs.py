from __future__ import annotations

import io
import threading
from contextvars import copy_context
from functools import partial

import django
import pytest
from django.core import mail
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, default_storage
from django.core.mail.backends.base import BaseEmailBackend
from django.db import (
    IntegrityError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.models.fields.files import FieldFile
from django.db.models.signals import post_delete, pre_save
from PIL import Image

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge import dry_runs
from mcp_django.exposure.admin_bridge.dry_runs import as_text, dry_run, is_taken_back
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
    with dry_run():
        work()


def rows():
    """All that there is, column by column."""
    return {model: list(model.objects.order_by("pk").values()) for model in (Author, Book, Copy)}


def test_what_is_written_is_taken_back(book):
    before = rows()

    def work():
        book.title = "Persuasion"
        book.save()
        Book.objects.create(title="New", author=book.author)
        Author.objects.update(country="DE")
        assert Book.objects.count() == 2

    tried(work)

    assert rows() == before


# What is held back


def write(*recipients):
    return mail.EmailMessage("Hello", "body", "a@example.com", list(recipients))


def send_one():
    write("b@example.com").send()


def send_to_nobody():
    assert write().send() == 0


def send_by_function():
    mail.send_mail("Hello", "body", "a@example.com", ["b@example.com"])


class OwnMessage(mail.EmailMultiAlternatives):
    """As packages for mail services have them."""

    def send(self, *args, **kwargs):
        return super().send(*args, **kwargs)


def send_own_message():
    OwnMessage("Hello", "body", "a@example.com", ["b@example.com"]).send()


@pytest.mark.parametrize(
    ("send", "count"),
    [(send_one, 1), (send_by_function, 1), (send_own_message, 1), (send_to_nobody, 0)],
)
def test_mail_is_not_sent(send, count):
    tried(send)
    assert mail.outbox == []

    send()
    assert len(mail.outbox) == count


def test_mail_that_a_backend_is_given_is_sent():
    def work():
        backend = mail.get_connection() if django.VERSION < (6, 1) else mail.mailers.default
        backend.send_messages([write("b@example.com")])

    tried(work)

    assert len(mail.outbox) == 1


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


def test_the_size_of_a_picture_is_read_where_it_is_held():
    thing, pixel = Thing(title="T"), io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "PNG")

    def work():
        thing.picture.save("p.png", ContentFile(pixel.getvalue()), save=False)
        assert (thing.picture.width, thing.picture.height) == (1, 1)

    tried(work)

    assert not default_storage.exists(thing.picture.name)


def test_content_without_chunks_can_be_stored(book, tmp_path):
    (tmp_path / "plain").write_bytes(b"12345")

    def work():
        with (tmp_path / "plain").open("rb") as plain:
            book.scan.save("plain.txt", plain)
        assert book.scan.size == 5

    tried(work)

    assert not default_storage.exists("plain.txt")


def test_a_file_that_a_storage_is_given_stays():
    def work():
        default_storage.save("thumbnail.txt", ContentFile(b"small"))

    tried(work)

    assert default_storage.exists("thumbnail.txt")


def test_three_methods_of_django_ask_and_no_others_once():
    for _ in range(2):
        tried(lambda: None)

    classes = (Storage, FileSystemStorage, FieldFile, mail.EmailMessage, BaseEmailBackend)
    asking = {
        (kind, name)
        for kind in classes
        for name, method in vars(kind).items()
        if hasattr(method, "__wrapped__") and not name.startswith("_")
    }
    assert asking == {(mail.EmailMessage, "send"), (FieldFile, "save"), (FieldFile, "delete")}
    assert not any(hasattr(vars(kind)[name].__wrapped__, "__wrapped__") for kind, name in asking)


def test_a_cache_is_not_held_back():
    tried(lambda: cache.set("dry", 1))

    assert cache.get("dry") == 1
    cache.delete("dry")


# What cannot be tried


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def durable():
    with transaction.atomic(durable=True):
        pass


def swallow(work):
    def swallowing():
        try:
            work()
        except Exception:
            Author.objects.create(name="after all")

    return swallowing


def own_commit():
    transaction.commit()


BY_DJANGO = {
    "commit": transaction.commit,
    "rollback": transaction.rollback,
    "autocommit": lambda: transaction.set_autocommit(True),
}
BY_US = {
    **{
        sql: partial(execute, sql)
        for sql in (
            "CREATE TABLE dry (a int)",
            "/* note */ drop table library_book",
            "COMMIT",
            "SELECT 1; COMMIT",
            "ROLLBACK",
            "TRUNCATE library_book",
            "SET GLOBAL x = 1",
        )
    },
}


@pytest.mark.parametrize("name", [*BY_DJANGO, *BY_US])
@pytest.mark.parametrize("wrapped", [lambda work: work, swallow], ids=["plain", "swallowed"])
def test_what_cannot_be_taken_back_is_refused_before_it_is_done(book, name, wrapped):
    before = rows()

    def whole():
        book.delete()
        wrapped({**BY_DJANGO, **BY_US}[name])()

    if wrapped is swallow and name in BY_DJANGO:
        tried(whole)
    else:
        with pytest.raises(ToolError, match=r"^This cannot be tried: it .*Nothing was changed\.$"):
            tried(whole)

    assert rows() == before


def test_a_refusal_that_was_swallowed_is_told_in_place_of_what_came_of_it():
    def work():
        try:
            execute("COMMIT")
        except ToolError:
            raise LookupError from None

    with pytest.raises(ToolError, match="it ends a transaction"):
        tried(work)


@pytest.mark.django_db(transaction=True)
def test_a_durable_block_is_refused():
    with pytest.raises(ToolError, match="it manages its own transaction"):
        tried(durable)


def test_a_dry_run_has_an_end(monkeypatch):
    monkeypatch.setattr(dry_runs, "LONGEST", -1.0)

    with pytest.raises(ToolError, match="it takes more than"):
        tried(Author.objects.count)


def test_files_that_are_too_large_for_memory_are_refused(book, monkeypatch):
    monkeypatch.setattr(dry_runs, "MOST_BYTES", 10)

    def work():
        book.scan.save("a", ContentFile(b"123456"))
        book.scan.save("b", ContentFile(b"123456"))

    with pytest.raises(ToolError, match="files that are too large"):
        tried(work)


@pytest.mark.django_db(transaction=True)
def test_writing_from_another_thread_is_refused_before_it_is_done():
    errors = []

    def create():
        try:
            Author.objects.create(name="from elsewhere")
        except ToolError as error:
            errors.append(str(error))
        finally:
            connections.close_all()

    def work():
        # As libraries do that carry context along.
        thread = threading.Thread(target=copy_context().run, args=[create])
        thread.start()
        thread.join()

    with pytest.raises(ToolError, match="from another thread"):
        tried(work)

    assert len(errors) == 1
    assert not Author.objects.exists()


def test_records_that_refer_to_nothing_are_refused_in_the_end(book):
    if not connection.features.can_defer_constraint_checks:
        pytest.skip("this database looks at once")

    with pytest.raises(ToolError, match="refer to others that are not there"):
        tried(lambda: Book.objects.update(author_id=10_000))

    assert Book.objects.get().author_id != 10_000


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_ended_past_django_is_told():
    def work():
        Author.objects.create(name="done")
        if VENDOR == "sqlite":
            with connection.cursor() as cursor:
                cursor.executescript("SELECT 1")  # which commits
        else:
            connection.connection.commit()

    with pytest.raises(ToolError, match="This could not be taken back"):
        tried(work)

    assert Author.objects.get().name == "done"


def test_errors_of_the_work_pass_and_everything_is_taken_back(book):
    def work():
        Book.objects.all().delete()
        raise IntegrityError("its own")

    with pytest.raises(IntegrityError, match="its own"):
        tried(work)

    assert Book.objects.exists()


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
def test_a_connection_that_was_closed_has_taken_everything_back(ann):
    def work():
        ann.delete()
        connection.close()
        raise ToolError("It went away.")

    with pytest.raises(ToolError, match="It went away"):
        tried(work)

    assert Author.objects.exists()


def test_there_is_no_dry_run_inside_of_a_dry_run():
    with pytest.raises(RuntimeError, match="inside of a dry run"), dry_run():
        tried(lambda: None)


# Around it


@pytest.mark.parametrize("fault", [None, ToolError("No.")])
def test_nothing_is_left_behind(ann, fault):
    before = (list(pre_save.receivers), list(post_delete.receivers))
    wrappers = list(connection.execute_wrappers)

    def work():
        ann.delete()
        if fault:
            raise fault

    try:
        tried(work)
    except ToolError:
        assert fault

    assert (list(pre_save.receivers), list(post_delete.receivers)) == before
    assert connection.execute_wrappers == wrappers
    assert dry_runs.current.get() is None
    ann = Author.objects.get()
    ann.name = "Bea"
    ann.save()
    assert Author.objects.get().name == "Bea"


@pytest.fixture
def nowhere():
    """A second database, which cannot be reached."""
    settings = {**connections.settings["default"]}
    settings |= {"NAME": "/nowhere/at/all", "HOST": "127.0.0.1", "PORT": "1", "OPTIONS": {}}
    connections.settings[NO_DB_ALIAS] = settings
    yield NO_DB_ALIAS
    connections[NO_DB_ALIAS].close()
    del connections[NO_DB_ALIAS]
    del connections.settings[NO_DB_ALIAS]


def test_a_database_that_is_down_and_not_needed_does_not_matter(nowhere, book):
    tried(book.delete)
    assert Book.objects.exists()
    with pytest.raises(OperationalError):
        tried(lambda: Author.objects.using(nowhere).update(name="x"))


@pytest.fixture
def empty():
    connections.settings["empty"] = {**connections.settings["default"],
                                     "ENGINE": "django.db.backends.dummy"}  # fmt: skip
    yield
    del connections["empty"]
    del connections.settings["empty"]


def test_a_site_without_a_default_database_can_try(empty, ann):
    tried(ann.delete)
    assert Author.objects.exists()


@pytest.mark.skipif(VENDOR != "mariadb", reason="others have transactions in every table")
def test_tables_without_transactions_cannot_be_tried(monkeypatch):
    # As with MyISAM as the engine of new tables.
    monkeypatch.setattr(connection.features, "supports_transactions", False)

    with pytest.raises(ToolError, match="has no transactions"):
        tried(lambda: None)


# Statements


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "(SELECT 1) UNION (SELECT 2);",
        "  insert into a values (%s)",
        "WITH x AS (SELECT 1) UPDATE a SET b = 1",
        'SAVEPOINT "s1"',
        'RELEASE SAVEPOINT "s1"',
        'ROLLBACK TO SAVEPOINT "s1"',
        "ROLLBACK TO s1",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET search_path = x",
        "PRAGMA foreign_key_check",
        "SELECT 1 -- note",
        "DELETE FROM `a`; \n",
    ],
)
def test_what_a_transaction_takes_back_may_run(sql):
    assert is_taken_back(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "$",
        "COMMIT",
        "END",
        "BEGIN",
        "ROLLBACK",
        "ROLLBACK; SELECT 'TO'",
        "select 1 ; commit",
        "CREATE TABLE a (b int)",
        "ALTER TABLE a ADD b int",
        "DROP TABLE a",
        "TRUNCATE a",
        "VACUUM",
        "CALL p()",
        "DO $$ BEGIN END $$",
        "COPY a TO PROGRAM 'x'",
        "SET AUTOCOMMIT = 1",
        "SET @@session.autocommit = 1",
        "set global x = 1",
        "/*!50000 COMMIT */",
        "SELECT 'it''s'; COMMIT",
        r"SELECT 'a\'; COMMIT; --'",
        r"SELECT E'a\''; COMMIT; --'",
        "LOCK TABLES a WRITE",
    ],
)
def test_all_others_may_not(sql):
    assert not is_taken_back(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a;b'",
        "SELECT $$;COMMIT$$",
        "/* note */ SELECT 1",
        "LOCK TABLE a IN SHARE MODE",
        "REPLACE INTO a VALUES (1)",
    ],
)
def test_sql_that_only_the_database_could_tell_from_these_may_not_either(sql):
    assert not is_taken_back(sql)


class Composed:
    def as_string(self, context):
        return "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", b"SELECT 1", Composed()], ids=["str", "bytes", "own"])
def test_a_statement_is_a_text_however_a_driver_writes_it(sql):
    assert as_text(sql) == "SELECT 1"
