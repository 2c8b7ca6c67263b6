from __future__ import annotations

import io
import json
import threading
from contextvars import copy_context
from functools import partial

import django
import pytest
from django.contrib.auth.models import Group, User
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
    models,
    transaction,
)
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.models import F
from django.db.models.fields.files import FieldFile
from django.db.models.signals import post_delete, pre_save
from PIL import Image

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge import dry_run_watch
from mcp_django.exposure.admin_bridge import dry_run_watch as dry_run_changes
from mcp_django.exposure.admin_bridge.dry_runs import MOST_COMPARED, dry_run
from mcp_django.exposure.admin_bridge.rights import lock
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import Registry
from tests.databases import VENDOR
from tests.library.admin import site
from tests.library.models import Author, Book, Copy, Genre, Loan
from tests.library.rights import library, rights_of
from tests.nasty.models import Order, PaidOrder, Person, Seat
from tests.nasty.site import caller as nasty_caller
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


@pytest.fixture
def librarian(make_user):
    names = ("author", "book", "copy", "genre")
    return make_user("lib", *(f"view_{name}" for name in names), is_staff=True)


@pytest.fixture
def rights(librarian):
    return rights_of(librarian)


def tried(rights, work):
    with dry_run(rights) as difference:
        work()
    return difference.as_json()


def rows():
    """All that there is, column by column."""
    return {model: list(model.objects.order_by("pk").values()) for model in (Author, Book, Copy)}


# What is shown


def test_a_change_is_shown_field_by_field_and_taken_back(book, rights):
    before = rows()

    def work():
        book.title, book.price = "Persuasion", "9.50"
        book.save()

    found = tried(rights, work)

    fields = {
        "title": {"before": "Emma", "after": "Persuasion"},
        "price": {"before": None, "after": "9.50"},
    }
    assert found["changed"] == [{"model": "library.book", "pk": book.pk, "fields": fields}]
    assert (found["created"], found["deleted"], found["in_bulk"]) == ([], [], [])
    assert rows() == before


def test_a_new_record_is_shown_as_it_would_be_read(ann, rights):
    found = tried(rights, lambda: Book.objects.create(title="Emma", author=ann))

    (created,) = found["created"]
    record = created["record"]
    assert created["model"] == "library.book"
    assert (record["title"], record["author"]) == ("Emma", {"pk": ann.pk, "label": "Ann"})
    assert not Book.objects.exists()


def test_a_deletion_is_shown_with_all_that_goes_along(book, rights):
    Copy.objects.create(book=book, number=7)
    before = rows()

    found = tried(rights, book.author.delete)

    assert [one["model"] for one in found["deleted"]] == [
        "library.copy",
        "library.book",
        "library.author",
    ]
    assert found["deleted"][0]["record"]["number"] == 7
    assert rows() == before


def test_only_the_end_counts(book, rights):
    def work():
        book.title = "Other"
        book.save()
        book.title = "Emma"
        book.save()
        Genre.objects.create(code="short").delete()

    found = tried(rights, work)

    assert (found["created"], found["changed"], found["deleted"]) == ([], [], [])


def test_relations_that_are_added_and_removed_are_shown_with_labels(book, rights):
    red, blue, old = (Genre.objects.create(code=code) for code in ("red", "blue", "old"))
    book.keywords.set([red, old])

    def work():
        book.keywords.set([blue, red])
        book.keywords.add(Genre.objects.create(code="new"))

    registry = library(Book={"filter_fields": ["id", "keywords"]})
    found = tried(rights_of(rights.request.user, registry=registry), work)

    (relation,) = found["relations"]
    assert relation["field"] == "keywords"
    assert [one["label"] for one in relation["added"]] == ["blue", "new"]
    assert relation["removed"] == [{"pk": old.pk, "label": "old"}]
    assert set(book.keywords.all()) == {red, old}
    assert tried(rights, work)["relations"] == []  # of a book whose keywords nobody may see


def test_a_relation_that_is_cleared_or_changed_from_the_other_side_is_shown(book, rights):
    red, blue = (Genre.objects.create(code=code) for code in ("red", "blue"))
    book.keywords.add(red)
    registry = library(Book={"filter_fields": ["id", "keywords"]})
    rights = rights_of(rights.request.user, registry=registry)

    def clear():
        book.keywords.clear()
        book.keywords.add(red)

    def swap():
        book.keywords.remove(red, blue)
        book.keywords.add(blue)
        book.keywords.remove(blue)

    assert tried(rights, clear)["relations"] == []
    (relation,) = tried(rights, swap)["relations"]
    assert relation == {
        "model": "library.book",
        "pk": book.pk,
        "field": "keywords",
        "added": [],
        "removed": [{"pk": red.pk, "label": "red"}],
    }


@pytest.mark.parametrize("sender", [Author, Book.keywords.through])
def test_relations_that_are_none_of_djangos_leave_the_difference_incomplete(book, rights, sender):
    def work():
        for action, keys in (("post_add", {1}), ("pre_remove", None)):
            models.signals.m2m_changed.send(
                sender=sender, instance=book, action=action, reverse=False, model=Genre,
                pk_set=keys, using="default",
            )  # fmt: skip

    assert tried(rights, work)["is_complete"] is False


@pytest.mark.parametrize(
    ("work", "operation"),
    [
        (lambda ann: Genre.objects.bulk_create([Genre(code="a"), Genre(code="b")]), "created"),
        (lambda ann: Author.objects.update(country="DE"), "changed"),
        (lambda ann: Author.objects.all()._raw_delete("default"), "deleted"),
    ],
    ids=["bulk_create", "update", "raw_delete"],
)
def test_what_is_written_without_signals_is_named_by_its_model(ann, rights, work, operation):
    (found,) = tried(rights, lambda: work(ann))["in_bulk"]

    assert found["operation"] == operation
    assert tried(rights, lambda: Genre.objects.create(code="one"))["in_bulk"] == []


@pytest.mark.parametrize(
    ("sql", "is_complete"),
    [
        ("UPDATE library_book SET title = 'x'", True),
        ("DELETE FROM django_migrations WHERE 1 = 0", False),
        ("WITH one AS (SELECT 1) SELECT * FROM one", True),
        # It might have written.
        ("WITH one AS (SELECT 'delete') SELECT * FROM one", False),
    ],
)
def test_sql_that_may_have_written_anywhere_leaves_the_difference_incomplete(
    book, rights, sql, is_complete
):
    assert tried(rights, partial(execute, sql))["is_complete"] is is_complete


def test_a_row_that_is_locked_is_no_change(book, rights):
    def work():
        with transaction.atomic():
            lock(Book, book.pk, using="default")

    assert tried(rights, work)["in_bulk"] == []


def test_only_so_many_records_are_compared_and_that_is_said(ann, rights, monkeypatch):
    def work(count):
        for number in range(count):
            Genre.objects.create(code=f"g{number}")

    few = tried(rights, lambda: work(MOST_COMPARED))
    many = tried(rights, lambda: work(MOST_COMPARED + 1))
    monkeypatch.setattr(dry_run_changes, "MOST", 3)
    more = tried(rights, lambda: work(4))

    assert (len(few["created"]), few["is_complete"]) == (MOST_COMPARED, True)
    assert (len(many["created"]), many["is_complete"]) == (MOST_COMPARED, False)
    assert (len(more["created"]), more["is_complete"]) == (3, False)


def test_the_answer_is_json(book, rights):
    found = tried(rights, book.delete)

    assert json.loads(json.dumps(found)) == found


def test_a_dry_run_that_failed_has_nothing_to_show(book, rights):
    seen = []

    def work():
        with dry_run(rights) as difference:
            seen.append(difference)
            book.delete()
            raise LookupError

    with pytest.raises(LookupError):
        work()

    (difference,) = seen
    assert difference.as_json()["deleted"] == []
    assert Book.objects.exists()


# What this caller may not see


def test_columns_rows_and_models_that_are_hidden_are_in_no_difference(
    book, librarian, monkeypatch
):
    kind = type("Mine", (type(site._registry[Author]),), {})
    monkeypatch.setattr(kind, "get_queryset", lambda self, r: Author.objects.filter(country="FR"))
    monkeypatch.setitem(site._registry, Author, kind(Author, site))
    bert = Author.objects.create(name="Bert", country="DE")
    librarian.user_permissions.filter(codename="view_copy").delete()

    def work():
        Book.objects.filter(pk=book.pk).update(secret_note="xyzzy")
        book.secret_note = "plugh"
        book.save()
        for one in Author.objects.all():
            one.name += " the Great"
            one.salary += 1
            one.save()
        Copy.objects.create(book=book, number=31337)
        Author.objects.create(name="Hidden", country="DE")
        bert.delete()

    found = tried(rights_of(librarian), work)

    label, name = (one["fields"] for one in found["changed"])
    assert label["author"]["after"]["label"] == "Ann the Great"
    assert name == {"name": {"before": "Ann", "after": "Ann the Great"}}
    assert (found["created"], found["deleted"]) == ([], [])
    written = json.dumps(found)
    for hidden in ("xyzzy", "plugh", "s3cr3t", "4711", "4712", "Bert", "Hidden", "31337", "copy"):
        assert hidden not in written


def test_a_record_that_leaves_what_the_caller_sees_is_shown_as_it_was(ann, librarian, monkeypatch):
    kind = type("Mine", (type(site._registry[Author]),), {})
    monkeypatch.setattr(kind, "get_queryset", lambda self, r: Author.objects.filter(country="FR"))
    monkeypatch.setitem(site._registry, Author, kind(Author, site))

    def work():
        ann.country, ann.name = "DE", "Anna"
        ann.save()

    found = tried(rights_of(librarian), work)

    assert [one["record"]["name"] for one in found["deleted"]] == ["Ann"]
    assert "Anna" not in json.dumps(found)


@pytest.mark.parametrize("change", [None, {"aggregates_only": True}])
def test_of_a_model_that_shows_no_records_nothing_is_told(ann, librarian, change):
    rights = rights_of(librarian, registry=library(Author=change))

    def work():
        Author.objects.update(name="x")
        ann.save()
        ann.delete()
        Author.objects.bulk_create([Author(name="y")])

    hidden = tried(rights, work)
    nothing = tried(rights, lambda: None)

    assert hidden == nothing


def test_relations_of_hidden_records_and_those_seen_from_the_other_side(book, librarian):
    genre = Genre.objects.create(code="red")
    registry = library(Book={"filter_fields": ["id", "keywords"]})
    librarian.user_permissions.filter(codename="view_book").delete()

    def work():
        book.keywords.add(genre)

    assert tried(rights_of(librarian, registry=registry), work)["relations"] == []


def test_relations_of_a_record_that_is_not_there_for_this_caller_are_not_told(
    book, rights, monkeypatch
):
    genre = Genre.objects.create(code="red")
    registry = library(Book={"filter_fields": ["id", "keywords"]})
    kind = type("Mine", (type(site._registry[Book]),), {})
    monkeypatch.setattr(kind, "get_queryset", lambda self, request: Book.objects.none())
    monkeypatch.setitem(site._registry, Book, kind(Book, site))
    rights = rights_of(rights.request.user, registry=registry)

    assert tried(rights, lambda: book.keywords.add(genre))["relations"] == []


def test_a_relation_is_shown_from_the_side_that_it_was_changed_from(make_user, settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": []}
    user = make_user("root", is_superuser=True)
    group, other = Group.objects.create(name="a"), Group.objects.create(name="b")
    other.user_set.add(user)
    registry = Registry()
    for model, name in ((User, "groups"), (Group, "user")):
        attributes = {"fields": ["id"], "filter_fields": [name], "label_fields": ["id"]}
        registry.register(model, type("Some", (ModelExposure,), attributes))

    def work():
        group.user_set.add(user)
        other.user_set.clear()

    first, second = tried(rights_of(user, registry=registry), work)["relations"]

    label = {"pk": user.pk, "label": str(user.pk)}
    assert first == {
        "model": "auth.group", "pk": group.pk, "field": "user", "added": [label], "removed": [],
    }  # fmt: skip
    assert second["removed"] == [label]
    assert user.groups.get() == other


def test_relations_to_hidden_records_are_not_told(book, librarian):
    genre = Genre.objects.create(code="red")
    registry = library(Book={"filter_fields": ["id", "keywords"]})
    librarian.user_permissions.filter(codename="view_genre").delete()

    found = tried(rights_of(librarian, registry=registry), lambda: book.keywords.add(genre))

    assert found["relations"] == []


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
def test_mail_is_not_sent(rights, send, count):
    tried(rights, send)
    assert mail.outbox == []

    send()
    assert len(mail.outbox) == count


def test_mail_that_a_backend_is_given_is_sent(rights):
    def work():
        backend = mail.get_connection() if django.VERSION < (6, 1) else mail.mailers.default
        backend.send_messages([write("b@example.com")])

    tried(rights, work)

    assert len(mail.outbox) == 1


def test_other_threads_go_on_sending_and_writing(rights, ann):
    def store():
        Book(scan=ContentFile(b"1", name="t")).scan.save("t", ContentFile(b"1"), save=False)

    def work():
        for job in (send_one, store):
            thread = threading.Thread(target=job)
            thread.start()
            thread.join()

    tried(rights, work)

    assert len(mail.outbox) == 1
    assert default_storage.exists("t")


def test_functions_after_the_commit_do_not_run(rights, ann):
    ran = []

    def work():
        transaction.on_commit(lambda: ran.append(1))
        with transaction.atomic():
            transaction.on_commit(lambda: ran.append(2))

    tried(rights, work)
    assert ran == []


def test_files_of_records_are_stored_in_memory_only_and_can_be_read_there(book, rights):
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

    tried(rights, work)

    assert default_storage.listdir("")[1] == ["old.txt"]
    assert default_storage.open("old.txt").read() == b"old"
    assert not Book.objects.get(pk=other.pk).scan


def test_the_size_of_a_picture_is_read_where_it_is_held(rights):
    thing, pixel = Thing(title="T"), io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "PNG")

    def work():
        thing.picture.save("p.png", ContentFile(pixel.getvalue()), save=False)
        assert (thing.picture.width, thing.picture.height) == (1, 1)

    tried(rights, work)

    assert not default_storage.exists(thing.picture.name)


def test_content_without_chunks_can_be_stored(book, rights, tmp_path):
    (tmp_path / "plain").write_bytes(b"12345")

    def work():
        with (tmp_path / "plain").open("rb") as plain:
            book.scan.save("plain.txt", plain)
        assert book.scan.size == 5

    tried(rights, work)

    assert not default_storage.exists("plain.txt")


def test_a_file_that_a_storage_is_given_stays(rights):
    def work():
        default_storage.save("thumbnail.txt", ContentFile(b"small"))

    tried(rights, work)

    assert default_storage.exists("thumbnail.txt")


def test_three_methods_of_django_ask_and_no_others_once(rights):
    for _ in range(2):
        tried(rights, lambda: None)

    classes = (Storage, FileSystemStorage, FieldFile, mail.EmailMessage, BaseEmailBackend)
    asking = {
        (kind, name)
        for kind in classes
        for name, method in vars(kind).items()
        if hasattr(method, "__wrapped__") and not name.startswith("_")
    }
    assert asking == {(mail.EmailMessage, "send"), (FieldFile, "save"), (FieldFile, "delete")}
    assert not any(hasattr(vars(kind)[name].__wrapped__, "__wrapped__") for kind, name in asking)


def test_a_cache_is_not_held_back(rights):
    tried(rights, lambda: cache.set("dry", 1))

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
def test_what_cannot_be_taken_back_is_refused_before_it_is_done(book, rights, name, wrapped):
    before = rows()

    def whole():
        book.delete()
        wrapped({**BY_DJANGO, **BY_US}[name])()

    if wrapped is swallow and name in BY_DJANGO:
        tried(rights, whole)
    else:
        with pytest.raises(ToolError, match=r"^This cannot be tried: it .*Nothing was changed\.$"):
            tried(rights, whole)

    assert rows() == before


def test_a_refusal_that_was_swallowed_is_told_in_place_of_what_came_of_it(rights):
    def work():
        try:
            execute("COMMIT")
        except ToolError:
            raise LookupError from None

    with pytest.raises(ToolError, match="it ends a transaction"):
        tried(rights, work)


@pytest.mark.django_db(transaction=True)
def test_a_durable_block_is_refused(rights):
    with pytest.raises(ToolError, match="it manages its own transaction"):
        tried(rights, durable)


def test_a_dry_run_has_an_end(rights, monkeypatch):
    monkeypatch.setattr(dry_run_watch, "LONGEST", -1.0)

    with pytest.raises(ToolError, match="it takes more than"):
        tried(rights, Author.objects.count)


def test_files_that_are_too_large_for_memory_are_refused(book, rights, monkeypatch):
    monkeypatch.setattr(dry_run_watch, "MOST_BYTES", 10)

    def work():
        book.scan.save("a", ContentFile(b"123456"))
        book.scan.save("b", ContentFile(b"123456"))

    with pytest.raises(ToolError, match="files that are too large"):
        tried(rights, work)


@pytest.mark.django_db(transaction=True)
def test_writing_from_another_thread_is_refused_before_it_is_done(rights):
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
        tried(rights, work)

    assert len(errors) == 1
    assert not Author.objects.exists()


def test_records_that_refer_to_nothing_are_refused_in_the_end(book, rights):
    if not connection.features.can_defer_constraint_checks:
        pytest.skip("this database looks at once")

    with pytest.raises(ToolError, match="refer to others that are not there"):
        tried(rights, lambda: Book.objects.update(author_id=10_000))

    assert Book.objects.get().author_id != 10_000


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_ended_past_django_is_told(rights):
    def work():
        Author.objects.create(name="done")
        if VENDOR == "sqlite":
            with connection.cursor() as cursor:
                cursor.executescript("SELECT 1")  # which commits
        else:
            connection.connection.commit()

    with pytest.raises(ToolError, match="This could not be taken back"):
        tried(rights, work)

    assert Author.objects.get().name == "done"


def test_errors_of_the_work_pass_and_everything_is_taken_back(book, rights):
    def work():
        Book.objects.all().delete()
        raise IntegrityError("its own")

    with pytest.raises(IntegrityError, match="its own"):
        tried(rights, work)

    assert Book.objects.exists()


def test_after_a_failed_statement_that_was_swallowed_all_is_taken_back(book, rights):
    Loan.objects.create(copy=Copy.objects.create(book=book, number=1))

    def work():
        book.title = "x"
        book.save()
        with pytest.raises(IntegrityError), transaction.atomic():
            Copy.objects.create(book=book, number=1)

    found = tried(rights, work)

    assert found["changed"][0]["fields"]["title"]["after"] == "x"
    assert Book.objects.get().title == "Emma"


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_closed_has_taken_everything_back(ann, rights):
    def work():
        ann.delete()
        connection.close()
        raise ToolError("It went away.")

    with pytest.raises(ToolError, match="It went away"):
        tried(rights, work)

    assert Author.objects.exists()


def test_there_is_no_dry_run_inside_of_a_dry_run(rights):
    with pytest.raises(RuntimeError, match="inside of a dry run"), dry_run(rights):
        tried(rights, lambda: None)


# Around it


@pytest.mark.parametrize("fault", [None, ToolError("No.")])
def test_nothing_is_left_behind(ann, rights, fault):
    before = (list(pre_save.receivers), list(post_delete.receivers))
    wrappers = list(connection.execute_wrappers)

    def work():
        ann.delete()
        if fault:
            raise fault

    try:
        tried(rights, work)
    except ToolError:
        assert fault

    assert (list(pre_save.receivers), list(post_delete.receivers)) == before
    assert connection.execute_wrappers == wrappers
    assert dry_run_watch.current.get() is None
    ann = Author.objects.get()
    ann.name = "Bea"
    ann.save()
    assert Author.objects.get().name == "Bea"


@pytest.mark.django_db(transaction=True)
def test_signals_of_other_threads_are_none_of_this_dry_run(rights, ann):
    class Other(models.Model):
        class Meta:
            app_label = "library"
            managed = False

    def signal():
        pre_save.send(sender=Other, instance=Other(), raw=False, using="default")
        models.signals.post_save.send(sender=Other, instance=Other(pk=1), created=True, raw=False,
                                      using="default", update_fields=None)  # fmt: skip

    with dry_run(rights) as difference:
        thread = threading.Thread(target=signal)
        thread.start()
        thread.join()

    assert difference.run.touched == {}


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


def test_a_database_that_is_down_and_not_needed_does_not_matter(nowhere, book, rights):
    assert tried(rights, book.delete)["deleted"]
    with pytest.raises(OperationalError):
        tried(rights, lambda: Author.objects.using(nowhere).update(name="x"))


@pytest.fixture
def empty():
    connections.settings["empty"] = {**connections.settings["default"],
                                     "ENGINE": "django.db.backends.dummy"}  # fmt: skip
    yield
    del connections["empty"]
    del connections.settings["empty"]


def test_a_site_without_a_default_database_can_try(empty, ann, rights):
    assert tried(rights, ann.delete)["deleted"]


def test_f_expressions_are_shown_as_what_they_come_to(ann, librarian):
    rights = rights_of(librarian, registry=library(Author={"fields": ["id", "salary"]}))

    def work():
        ann.salary = F("salary") + 1
        ann.save()

    (changed,) = tried(rights, work)["changed"]
    assert changed["fields"]["salary"] == {"before": 4711, "after": 4712}


def test_records_with_a_key_of_two_parts_are_told_with_both():
    seat = Seat.objects.create(hall=1, number=2)
    with dry_run(nasty_caller()) as difference:
        seat.delete()

    assert [one["pk"] for one in difference.as_json()["deleted"]] == [[1, 2]]


def test_a_proxy_is_told_by_the_name_of_what_is_exposed(make_user, settings):
    settings.MCP_DJANGO = {"ADMIN_SITES": []}
    registry = Registry()
    registry.register(Order, type("Some", (ModelExposure,), {"fields": ["id", "number"]}))
    rights = rights_of(make_user("root", is_superuser=True), registry=registry)
    order = PaidOrder.objects.create(owner=Person.objects.create(username="boss"), number="A1")

    def work():
        order.number = "A2"
        order.save()

    (changed,) = tried(rights, work)["changed"]
    assert (changed["model"], changed["pk"]) == ("nasty.order", order.pk)


@pytest.mark.skipif(VENDOR != "mariadb", reason="others have transactions in every table")
def test_tables_without_transactions_cannot_be_tried(rights, monkeypatch):
    # As with MyISAM as the engine of new tables.
    monkeypatch.setattr(connection.features, "supports_transactions", False)

    with pytest.raises(ToolError, match="has no transactions"):
        tried(rights, lambda: None)
