from marketing_api.operations import users
from marketing_api.records.users import Manager, User, UserGroup
from tests.marketing_api import samples
from tests.marketing_api.responses import records, rejected


def test_ids_of_users_are_the_keys_of_the_maps() -> None:
    ada, ben = records(User, users.LISTS, samples.USERS)
    assert (ada.business_id, ada.user_id, ada.full_name, ada.username, ada.user_group) == (
        77,
        1,
        "Ada",
        "ada",
        "Staff",
    )
    assert (ben.user_id, ben.user_group, ben.status) == (2, None, "Active")


def test_user_without_a_business_is_set_aside_unless_one_was_asked_for() -> None:
    data = {"users": {"items": [{"users": [{"id": 1, "fullname": "Ada"}]}]}}
    assert [bad.reason for bad in rejected(users.LISTS, data)] == ["business_id: missing"]
    (ada,) = records(User, users.LISTS, data, businessid=77)
    assert (ada.business_id, ada.user_id) == (77, 1)


def test_users_in_another_case_are_those_of_the_business() -> None:
    data = {"users": {"items": {"77": {"Users": {"1": {"fullname": "Ada"}, "2": {"fullname": "Ben"}}}}}}
    assert [(one.business_id, one.user_id) for one in records(User, users.LISTS, data)] == [(77, 1), (77, 2)]


def test_no_users_in_php_shape_are_no_rows() -> None:
    assert records(User, users.LISTS, {"users": {"count": 0, "items": []}}) == []
    assert records(User, users.LISTS, {"users": {"count": 1, "items": {"77": {"users": []}}}}) == []


def test_managers_and_groups_are_rows() -> None:
    (manager,) = records(Manager, users.MANAGERS, samples.MANAGERS)
    assert (manager.manager_id, manager.full_name, manager.email, manager.status) == (
        3,
        "Mia",
        "mia@example.com",
        "Active",
    )
    (group,) = records(UserGroup, users.GROUPS, samples.GROUPS)
    assert (group.group_id, group.name, group.status) == (4, "Staff", "Active")
