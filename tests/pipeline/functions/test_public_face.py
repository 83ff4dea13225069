"""How users see the functions: help, completion, signatures, and errors without frames that are not theirs."""

import inspect
import pickle
import pydoc
import shutil
import traceback
from typing import Literal, get_args, get_origin

import pytest

import longwall
from longwall.pipeline.functions.one_run import Options

FUNCTIONS = [name for name in longwall.__all__ if inspect.isfunction(getattr(longwall, name))]
WITH_OPTIONS = ["cliques", "count", "explain", "frequent", "match", "maximal_cliques", "motifs", "orbits", "triangles"]


def frames_of(call):
    """The frames of the error of a call, from the call on."""
    with pytest.raises(longwall.InputError) as caught:
        call()
    error = caught.value
    assert error.__suppress_context__
    assert error.__cause__ is None
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_options_are_arguments_with_types_and_defaults(name):
    parameters = inspect.signature(getattr(longwall, name)).parameters
    assert "options" not in parameters
    assert {parameters[option].kind for option in Options.__annotations__} == {inspect.Parameter.KEYWORD_ONLY}
    assert get_origin(parameters["engine"].annotation) is Literal
    assert set(get_args(parameters["engine"].annotation)) == {"auto", "cpu", "cuda", "both"}
    assert (parameters["engine"].default, parameters["threads"].default, parameters["memory"].default) == (
        "auto",
        0,
        None,
    )
    assert "engine: Literal['cpu', 'cuda', 'both', 'auto'] = 'auto'" in pydoc.render_doc(getattr(longwall, name))


def test_the_defaults_that_are_shown_are_those_that_hold(graph):
    parameters = inspect.signature(longwall.count).parameters
    shown = {option: parameters[option].default for option in Options.__annotations__}
    assert longwall.count(graph, "triangle", **shown) == 45
    with pytest.raises(longwall.InputError, match="engine"):
        longwall.count(graph, "triangle", **shown | {"engine": "gpu"})


def test_choices_are_literals():
    literals = {
        "count": {"count", "engine", "per"},
        "triangles": {"per", "engine"},
        "cliques": {"per", "k", "engine"},
        "frequent": {"measure", "engine"},
        "explain": {"count", "engine"},
        "generate_graph": {"kind"},
        "open_graph": {"empty", "ids"},
    }
    for name, wanted in literals.items():
        parameters = inspect.signature(getattr(longwall, name)).parameters
        assert {one for one, parameter in parameters.items() if "Literal[" in repr(parameter.annotation)} == wanted


def test_parameters_of_generators_are_no_options():
    parameters = inspect.signature(longwall.generate_graph).parameters
    assert "engine" not in parameters
    assert parameters["params"].kind is inspect.Parameter.VAR_KEYWORD


def test_generators_show_no_arguments_of_the_inside():
    assert list(inspect.signature(longwall.generate_graph).parameters) == ["kind", "seed", "num_labels", "params"]
    for name in ("resources", "adjacency", "files"):
        with pytest.raises(longwall.InputError, match=f"generator rmat: parameter '{name}' is unknown; it takes scale"):
            longwall.generate_graph("rmat", seed=1, scale=4, edge_factor=2, **{name: None})


def test_help_has_no_quoted_types():
    text = pydoc.plain(pydoc.render_doc(longwall.count))
    head = next(line for line in text.splitlines() if line.startswith("count("))
    assert "graph: Any" in head
    assert "Unpack" not in head
    assert "in module longwall" in text


def test_help_is_an_overview():
    for name in longwall.__all__:
        if name not in {"Graph", "GraphView", "Found", "Pattern", "PatternCount", "__version__"}:
            assert f"`{name}`" in longwall.__doc__
    assert "Make a graph" in pydoc.plain(pydoc.render_doc(longwall))


def test_completion_has_public_names_only():
    assert dir(longwall) == sorted(longwall.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_the_package(name):
    function = getattr(longwall, name)
    assert function.__module__ == "longwall"
    assert function is getattr(longwall, name)
    assert pickle.loads(pickle.dumps(function)) is function


WRONG = {
    "count": lambda graph: longwall.count(graph, "no such pattern"),
    "count, deep in the run": lambda graph: longwall.count(graph, "triangle", memory="1KiB"),
    "graph": lambda graph: longwall.graph(3),
    "open_graph": lambda graph: longwall.open_graph("no such file"),
    "pattern": lambda graph: longwall.pattern("no such pattern"),
    "run": lambda graph: longwall.run({"graph": graph, "workload": {"kind": "none"}}),
    "resume": lambda graph: longwall.resume("no such run"),
    "explain": lambda graph: longwall.explain(graph, {"kind": "none"}),
    "match": lambda graph: longwall.match(graph, "triangle", limit=0),
    "rows": lambda graph: longwall.match("no such file", "triangle").to_arrow(),
    "count of rows": lambda graph: longwall.match("no such file", "triangle").count(),
    "filter": lambda graph: longwall.filter(3, None),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_an_error_of_one_frame(graph, name):
    assert frames_of(lambda: WRONG[name](graph)) == ["<lambda>", "<lambda>", "call"][-3:]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda graph: longwall.triangles(graph, by="vertex"),
            "triangles: there is no argument by. The arguments are graph, per, engine",
        ),
        (
            lambda graph: longwall.count(graph, "wedge", thread=2),
            "thread, did you mean threads? The arguments are graph, p",
        ),
        (lambda graph: longwall.graph([(1, 2)], column=3), "column, did you mean columns?"),
        (lambda graph: longwall.match(graph, "wedge", engin=3), "engin, did you mean engine?"),
        (
            lambda graph: longwall.count(graph),
            "count: missing a required argument: 'pattern'. The arguments are graph, p",
        ),
        (
            lambda graph: longwall.graph(graph, source=1),
            "graph: multiple values for argument 'source'. The arguments are",
        ),
        (lambda graph: longwall.generate_graph("rmat", scale=4), "generate_graph: missing a required argument: 'seed'"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_one_frame(graph, call, said):
    with pytest.raises(TypeError) as caught:
        call(graph)
    assert said in str(caught.value)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["<lambda>", "call"]


def test_an_interrupt_is_an_error_of_one_frame_that_says_how_to_go_on(graph, folder, monkeypatch):
    from longwall.pipeline import run as run_module

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    config = {"graph": graph, "workload": {"kind": "triangles"}, "run": {"name": "mine"}}
    with monkeypatch.context() as patched:
        patched.setattr(run_module, "_run", interrupted)
        for call in (lambda: longwall.count(graph, "triangle"), lambda: longwall.run(config)):
            with pytest.raises(KeyboardInterrupt) as caught:
                call()
            frames = traceback.extract_tb(caught.value.__traceback__)
            assert [frame.name for frame in frames][1:] == ["<lambda>", "call"]
    run = caught.value.run
    assert str(caught.value) == f'the finished part is kept; go on with: longwall.resume("{run}", graph=graph)'
    assert longwall.resume(run, graph=graph).count == 45
    shutil.rmtree(folder / "runs")


def test_other_errors_keep_their_frames(graph, monkeypatch):
    from longwall.pipeline.functions import one_run

    def failing(*_, **__):
        raise error

    monkeypatch.setattr(one_run, "answer", failing)
    for error in (ZeroDivisionError("a fault"), longwall.RunError("no memory")):
        with pytest.raises(type(error)) as caught:
            longwall.count(graph, "triangle")
        assert len(traceback.extract_tb(caught.value.__traceback__)) > 3
