"""What is read out of docstrings."""

from inspect import cleandoc

import pytest

from maymust.tools.docstring import read_docstring

GOOGLE = """Search the shop.

    Only what is in stock is found.

    Args:
        query (str): What to look for,
            in any language.
        limit: How many: at most this.
        **filters: Further filters.

    Returns:
        The articles. Args: are not here.

    Raises:
        ValueError: never.
    """
NUMPY = """Search the shop.

    Only what is in stock is found.

    Parameters
    ----------
    query : str
        What to look for,
        in any language.
    limit, most : int, optional
        How many: at most this.

    Returns
    -------
    list
        The articles.
    """
SPHINX = """Search the shop.

    Only what is in stock is found.

    :param query: What to look for,
        in any language.
    :param int limit: How many: at most this.
    :type query: str
    :returns: the articles
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_every_style_gives_the_same_text_and_the_same_words_on_parameters(text: str) -> None:
    read = read_docstring(text)
    assert read.text == "Search the shop.\n\nOnly what is in stock is found."
    assert read.parameters["query"] == "What to look for, in any language."
    assert read.parameters["limit"] == "How many: at most this."


def test_google_style_knows_further_arguments_and_ends_at_the_next_section() -> None:
    assert set(read_docstring(GOOGLE).parameters) == {"query", "limit", "filters"}


def test_numpy_style_gives_one_text_to_several_names() -> None:
    assert read_docstring(NUMPY).parameters["most"] == "How many: at most this."


def test_a_section_without_text_before_it_leaves_the_description_empty() -> None:
    read = read_docstring("Args:\n    q: the query\n")
    assert (read.text, read.parameters) == ("", {"q": "the query"})


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_is_an_empty_one(text: str | None) -> None:
    read = read_docstring(text)
    assert (read.text, read.parameters) == ("", {})


@pytest.mark.parametrize(
    "text",
    [
        "Compare a and b: the first is smaller.",
        "Takes 3 steps:\n\n1. look\n2. leap",
        "See also this:\n    an example: of words",
    ],
)
def test_text_with_colons_is_text(text: str) -> None:
    assert read_docstring(text).text == cleandoc(text)
    assert read_docstring(text).parameters == {}


def test_parameters_without_words_are_left_out() -> None:
    assert read_docstring("Do.\n\nArgs:\n    a:\n    b: said").parameters == {"b": "said"}
