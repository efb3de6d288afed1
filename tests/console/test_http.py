"""What pages are rendered from."""

from console.http import build_empty_state


def test_an_empty_table_has_a_button_only_where_it_leads_somewhere() -> None:
    state = build_empty_state("bot", "None yet", "Make one.", action="New", url="/new")
    assert (state["action"], state["url"], state["dialog"]) == ("New", "/new", "")
    assert build_empty_state("bot", "None", "Ask.", action="New", url="")["action"] == ""
    in_dialog = build_empty_state("bot", "None", "", action="New", url="/new", in_dialog=True)
    assert in_dialog["dialog"] == "/new"
