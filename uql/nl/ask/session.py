"""One question from its words to its answer: discover, plan, price, run, aggregate."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from uql.base.errors import BudgetError, ConfigError, QuestionError
from uql.base.names import suggestion
from uql.base.settings import Settings
from uql.features.embedder import Embedder
from uql.features.static import embedder_of
from uql.llm.gate import Gate
from uql.llm.providers.base import LearnsContext, Provider
from uql.llm.run_record import Run
from uql.nl.adapters import open_adapters
from uql.nl.adapters.base import Adapter
from uql.nl.ask.aggregator import Finding, Style, Words, aggregate, citations, in_words, value_of
from uql.nl.ask.answer import Answer, PlanView
from uql.nl.ask.answer_metrics import semantic_hit
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.ask.executor import FATAL, Executor, Limits, limit_of
from uql.nl.ask.node_runners import plan_text, result_text
from uql.nl.ask.outputs import Output, Step, caveats, left_out
from uql.nl.ask.plan_checks import Checked, brief, check_plan, error_line
from uql.nl.ask.planner import Planned, Planner
from uql.nl.ask.pricing import PlanPrice, price_of
from uql.nl.ask.room import checked as checked_sizes
from uql.nl.guard.guard import tables_named
from uql.nl.guard.workspace import Workspace
from uql.nl.papers.meta_engine import Answerer, Router, planned
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.lineage import Lineage
from uql.nl.prompts import planner as words
from uql.nl.schema import semantic_model
from uql.nl.schema.discover import discover, relevant, schema_text, shortlist
from uql.nl.schema.name_words import Near, in_common
from uql.nl.schema.scope import Scope
from uql.nl.schema.semantic_model import SemanticModel
from uql.nl.small.route import CANDIDATES, plan_by_vote
from uql.nl.small.vote import is_empty, switched_off
from uql.operators.replies import well_formed
from uql.session.events import finished
from uql.session.session import Session

Mode = Literal["meta", "dag", "interleaved"]
CALLS = 1_024  # of one question, over all its nodes
LONGEST = 1_000  # characters of the reason why there is no answer
TRACED = 30  # rows of an answer's results, the cited ones first, whose own rows are kept
SETTINGS = ("budget", "max_cost", "max_seconds", "max_tokens", "on_error")  # that ask takes too
Confirm = Callable[[PlanPrice, PlanView], bool]


@dataclass(frozen=True, slots=True)
class Options:
    """How a question is answered.

    Attributes:
        mode: "dag": the plan is written at once; "meta": sub-queries, operators and adapters; "interleaved": step by step.
        style: "short": at most ten words; "full": a sentence with details, inference and sources.
        rules: of the use case, in words.
        checker, decomposer: of the mode `meta`; without the checker every question is decomposed, without the decomposer none.
        router: ranks adapters; None: `uql` first.
        adapters: by name, or names of those that there are; None: those of this process.
        tables: to choose from; None: all.
        semantic_model: path of a `uql.model.toml` (`uql.nl.schema.semantic_model`); None: the one beside the database, where there is one.
        planner: model that plans and writes; None: that of the connection, which reads rows.
        plan: nodes to be run instead of a plan of the model's.
        confirm: asked with the price before anything runs, unless that is at most `confirm_over` USD.
        readings: ask whether the question is ambiguous; None: of models that can say so.
        columns: let the model choose the relevant columns; None: where there are more than six tables and no candidates vote.
        aggregate: True: the model writes every answer; False: none, what was found is put side by side; None: those that do not
            speak for themselves. A small model does not write: of several findings of the mode `meta` it names the one.
        candidates: plans that vote; 0: one plan decides alone; None: 5 of a small model, 0 of others.
        without: mechanisms of the vote that are switched off, by their names in `uql.nl.small.vote.SWITCHES`.
        sizes: of prompts and replies in tokens, by the names in `uql.nl.ask.room.NAMES`, and the `rows` of a result that a prompt shows;
            what is not named follows from the context and the output limit of the model.
        limits: hard ones.
    """

    mode: Mode = "dag"
    style: Style = "short"
    rules: tuple[str, ...] = ()
    checker: bool = True
    decomposer: bool = True
    router: Router | None = None
    adapters: Mapping[str, Adapter] | Sequence[str] | None = None
    tables: Sequence[str] | None = None
    semantic_model: str | Path | None = None
    planner: Provider | str | None = None
    plan: Plan | None = None
    confirm: Confirm | None = None
    confirm_over: float | None = None
    readings: bool | None = None
    columns: bool | None = None
    aggregate: bool | None = None
    candidates: int | None = None
    without: Collection[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name, value, choices in (("mode", self.mode, get_args(Mode)), ("style", self.style, get_args(Style))):
            if value not in choices:
                raise ConfigError(f"{name} = {value!r} is not possible", help=f"{name} is one of {', '.join(choices)}")
        if self.candidates is not None and self.candidates < 0:
            raise ConfigError(f"candidates = {self.candidates} is not possible", help="candidates = 0 or more")
        checked_sizes(self.sizes)
        switched_off(self.without)
        if self.plan is not None and not isinstance(self.plan, Plan):
            raise ConfigError(
                "plan is no Plan",
                help="plan = uql.nl.plan.dag.Plan((Node(…), …)), or answer.plan.plan; UQL: con.uql(…)",
            )


class QuestionSession:
    """Answers questions over the database of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._settings, self._model, self._emit = session.settings, session.given(session.settings), session.emit

    def answer(self, question: str, **options: Any) -> Answer:
        """As `ask`, to its end, in place of other statements of the session."""
        with self._session.running(self._settings):
            return finished(self.ask(question, **options))

    async def ask(self, question: str, **options: Any) -> Answer:
        """The answer to a question. A question that cannot be answered has one too, which says why.

        Args:
            options: fields of `Options`, and the settings budget, max_cost, max_seconds, max_tokens, on_error.
        Raises: ConfigError, AuthError, QuotaError, UnknownModelError, BackendError, whatever on_error says; QuestionError (UQL633)
            where there is nothing to ask about.
        """
        chosen, settings = self._options(options)
        words = well_formed(" ".join(question.split())) if isinstance(question, str) else ""
        if not words:
            raise QuestionError("the question is empty, or no text", help="ask in words: con.ask('How many …?')")
        began = time.monotonic()
        embedder = embedder_of(settings)
        path = self._semantic_model(chosen)
        semantics = semantic_model.read_if_present(path)
        scope = discover(words, self._session.catalog, embedder, tables=chosen.tables, model=semantics)
        run = Run(uuid.uuid4().hex[:12], settings.seed, f"ask: {words}")
        async with Gate.open(settings, run=run, model=self._model, calls=_calls(settings)) as gate:
            gate.listeners.append(self._emit)
            provider = await gate.provider()
            with Workspace(self._read, scope.sources, settings.with_values(budget=None)) as workspace:
                workspace.model = provider
                near = in_common if embedder is None else _alike(embedder)
                rules = (*chosen.rules, *semantics.rules(words, near))
                ctx = AskContext(words, scope.sources, gate, workspace, rules, chosen.planner, self._emit)
                ctx.find = self._finder(scope, embedder, chosen.tables, semantics)
                ctx.near = near
                ctx.sizes = chosen.sizes
                model = await gate.provider(chosen.planner)
                prompts = chosen.plan is None or any(node.kind is NodeKind.ADAPTER for node in chosen.plan.nodes)
                if isinstance(model, LearnsContext) and prompts:
                    await model.learn_context()
                asking = _Asking(ctx, scope, chosen, model, embedder)
                asking.result.origins, asking.result.semantic_model = self._origins(scope), path
                answer = await asking.answer()
            answer.warnings += gate.warnings
        answer.seconds = time.monotonic() - began
        return answer

    def _semantic_model(self, chosen: Options) -> Path:
        """The file that is named, else the one beside the database, or in this folder where that is in memory."""
        if chosen.semantic_model is not None:
            path = Path(chosen.semantic_model)
            if not path.is_file():
                raise ConfigError(f"there is no file {path}", help="uql model init writes one")
            return path
        return semantic_model.beside(self._session.catalog)

    def _finder(
        self, scope: Scope, embedder: Embedder | None, tables: Sequence[str] | None, semantics: SemanticModel
    ) -> Callable[[str], Scope]:
        """The tables of a question as those of a part of it see them: the same names, with the values that the part names."""

        def find(question: str) -> Scope:
            part_scope = discover(question, self._session.catalog, embedder, tables=tables, model=semantics)
            same = {name: source.origin for name, source in part_scope.sources.items()}
            return part_scope if same == {name: source.origin for name, source in scope.sources.items()} else scope

        return find

    async def judge(self, question: str, answer: str, reference: str) -> float:
        """Semantic Hit of an answer, the model being the judge where the words do not settle it; one call at most.

        Where the model gives no usable reply, or the budget is spent, the words alone judge.

        Args:
            reference: the right answer.
        Returns: in [0, 1].
        """
        run = Run(uuid.uuid4().hex[:12], self._settings.seed, f"judge: {question}")
        async with Gate.open(self._settings, run=run, model=self._model, calls=1) as gate:
            gate.listeners.append(self._emit)
            with Workspace(self._read, {}, self._settings) as workspace:
                try:
                    return await semantic_hit(AskContext(question, {}, gate, workspace), question, answer, reference)
                except (BudgetError, QuestionError):
                    return await semantic_hit(None, question, answer, reference)

    def _options(self, options: Mapping[str, Any]) -> tuple[Options, Settings]:
        option_names = [f.name for f in fields(Options)]
        for name in options:
            if name not in option_names and name not in SETTINGS:
                known = [*option_names, *SETTINGS]
                hint = f"{suggestion(name, known)}options: {', '.join(known)}"
                raise ConfigError(f"ask has no option {name!r}", help=hint)
        values = {name: value for name, value in options.items() if name in option_names}
        for name in ("rules", "tables", "adapters", "without"):  # a text alone is one of them
            if isinstance(values.get(name), str):
                values[name] = (values[name],)
        values["rules"] = tuple(values.get("rules") or ())
        settings = {name: value for name, value in options.items() if name in SETTINGS and value is not None}
        return Options(**values), self._settings.with_values(**settings)

    def _read(self, origin: str) -> pa.Table:
        catalog = self._session.catalog
        return catalog.cursor.sql(f"SELECT * FROM {catalog.named(origin).sql}").to_arrow_table()

    def _origins(self, scope: Scope) -> dict[str, str]:
        """The tables that a plan calls otherwise than the database does, as SQL writes them there."""
        catalog = self._session.catalog
        return {name: catalog.named(s.origin).sql for name, s in scope.sources.items() if name != s.origin}


def _alike(embedder: Embedder) -> Near:
    def near(text: str, others: Sequence[str]) -> list[float]:
        vectors = embedder.embed([text, *others])
        return [float(v) for v in vectors[1:] @ vectors[0]]

    return near


def _calls(settings: Settings) -> int | None:
    """The calls of a question: the setting, else 1,024."""
    if settings.exact or settings.budget == "all":
        return None
    return CALLS if settings.budget is None else int(settings.budget)


@dataclass(slots=True)
class _Asking:
    """One question on its way."""

    ctx: AskContext
    scope: Scope
    options: Options
    model: Provider  # that plans
    embedder: Embedder | None
    result: Answer = field(init=False)
    executor: Executor = field(init=False)
    planner: Planner = field(init=False)
    hidden: frozenset[str] = field(init=False)
    doubts: tuple[str, ...] = ()  # of the plan, that the answer states
    most: int = field(init=False)  # candidates that vote; 0: none

    def __post_init__(self) -> None:
        self.result = Answer(self.ctx.question, mode=self.options.mode)
        columns = (f for source in self.ctx.sources.values() for f in source.fields)
        self.hidden = frozenset(f.name.lower() for f in columns if f.private)  # that no model may see
        candidates = self.options.candidates
        self.most = candidates if candidates is not None else CANDIDATES if self.model.capabilities.small else 0
        self.planner = Planner.of(self.ctx, self.scope, self.model)
        self.executor = Executor(self.ctx, limits=self.options.limits, hidden=self.hidden)

    async def answer(self) -> Answer:
        """Runs the mode, and says how it ended."""
        try:
            await self._prepare()
            if await self._run():
                await self._write()
                await self._trace()
        except BudgetError as error:
            limit = limit_of(self.ctx)
            self.result.partial = self.result.partial or (self.ctx.gate.budget.exhausted if limit else "") or "budget"
            ended = f"{limit} was reached before there was a plan" if limit else error_line(error)
            self.result.cannot = self.result.cannot or ended
            self._note_found()
        except FATAL:
            raise
        except QuestionError as error:
            self.result.cannot = error_line(error)
        self._finish()
        self.result.cannot = brief(self.result.cannot, LONGEST)
        return self.result

    # ------------------------------------------------------------------------------------------------------------ before
    async def _prepare(self) -> None:
        """Readings of an ambiguous question, and the columns it needs."""
        if self.options.plan is not None:
            return
        many = len(self.scope.sources) > 6
        with_readings = self.options.readings if self.options.readings is not None else self.model.capabilities.judges
        if with_readings:
            schema = schema_text(self.scope, tokens=self.planner.tokens - 600)
            wording = words.readings(self.ctx.question, schema)
            reply = await self.ctx.say_or(wording, None, step="readings")
            if reply and reply["ambiguous"] and len(reply["readings"]) > 1:
                self.result.readings = tuple(" ".join(r.split()) for r in reply["readings"][:3])
                self.ctx.rules = (*self.ctx.rules, f"Read the question as: {self.result.readings[0]}")
        if self.options.columns if self.options.columns is not None else many and not self.most:
            self.scope = self.planner.scope = await relevant(self.ctx, self.scope, tokens=self.planner.tokens - 500)
        if many:
            relevant_tables = [t for t, _ in self.scope.relevant]
            near = shortlist(self.scope)
            names = [n for n in self.scope.sources if n in near.sources or n in relevant_tables]
            self.planner.scope = self.scope.only(names)

    # ----------------------------------------------------------------------------------------------------------- the run
    async def _run(self) -> bool:
        """Plans and runs; False where there is nothing to write an answer from."""
        settled = False
        if self.options.plan is None:
            self.ctx.emit(NodeEvent("plan", "writing"))
        if self.options.plan is not None:
            checked = self._check_user_plan(self.options.plan)
        elif self.options.mode == "interleaved":
            return await self._interleaved()
        elif self.options.mode == "meta":
            return await self._meta()
        else:
            proposal, settled = await self._planned(), self.most > 0
            self.result.tries = proposal.tries
            if proposal.cannot:
                self.result.cannot = proposal.cannot
                return False
            checked = proposal.checked
        self.executor.mend = None if settled else self.planner.mended
        self.executor.replan = None if settled or self.options.plan is not None else self._replan
        if any(node.kind is NodeKind.ADAPTER for node in checked.plan.nodes):
            self.executor.answering = self._answerer().run
        self.executor.plan = checked.plan
        self._tell_planned(checked.plan)
        if not self._confirmed(checked.plan):
            return False
        await self.executor.run(checked.plan)
        return True

    async def _planned(self, step: AskContext | None = None, done_nodes: Sequence[Node] = (), why: str = "") -> Planned:
        """The plan of the mode `dag`, or one made anew: of a small model by the vote of its candidates.

        In a plan that is made anew what has run stays, also in the answer where it was a part of it and nothing new reads it.
        """
        if self.most:
            why = why and f"The plan before failed: {why}"
            decision = await plan_by_vote(
                step or self.ctx,
                self.planner.scope,
                most=self.most,
                without=self.options.without,
                done_nodes=done_nodes,
                why=why,
            )
            self.doubts = decision.doubts
            self.result.readings = self.result.readings or decision.readings
            return decision.planned
        proposal = await self._replanned(step, done_nodes, why)
        self.doubts = (f"not in the plan: {proposal.left_out}",) if proposal.left_out else ()
        return proposal

    async def _replanned(self, step: AskContext | None, done_nodes: Sequence[Node], why: str) -> Planned:
        """The planner's plan; after one that has run, what is still needed."""
        run = self.executor
        if run.plan is None:
            return await self.planner.plan(step=step)
        reason = words.replanned(plan_text(run.plan, run.outputs, run.steps, self.hidden), why)
        results = "\n".join(result_text(node.name, run.outputs[node.name], hidden=self.hidden) for node in done_nodes)
        return await self.planner.plan(
            done_nodes=done_nodes, why=reason, results=results, stay=run.plan.answer, step=step
        )

    def _check_user_plan(self, plan: Plan) -> Checked:
        """A plan of the user's own, checked as one of the model's."""
        whole = forms.finished(plan.nodes)
        checked = check_plan(whole, self.ctx.sources, self.ctx.settings)
        if checked.problems:
            raise QuestionError(f"the plan cannot be run: {'; '.join(map(str, checked.problems))}")
        return checked

    async def _meta(self) -> bool:
        plan, self.result.signs = await planned(
            self.ctx,
            self.ctx.question,
            self.planner.scope.sources,
            checker=self.options.checker,
            decomposer=self.options.decomposer,
        )
        self.result.tries, self.executor.plan = 1, plan
        answerer = self._answerer()
        self.executor.answering = answerer.run
        self._tell_planned(plan)
        if not self._confirmed(plan):
            return False
        await self.executor.run(plan)
        self.result.plan = PlanView(plan, {}, answerer.operators)
        return True

    def _tell_planned(self, plan: Plan) -> None:
        steps = sum(node.kind is not NodeKind.ANSWER for node in plan.nodes)
        self.ctx.emit(NodeEvent("plan", "done", f"{steps} step{'s' * (steps != 1)}"))

    def _answerer(self) -> Answerer:
        option = self.options.adapters
        adapters = (
            open_adapters() if option is None else option if isinstance(option, Mapping) else open_adapters(option)
        )
        return Answerer(adapters, self.options.router, hidden=self.hidden)

    async def _interleaved(self) -> bool:
        from uql.nl.papers.caesura import Interleaved

        run = Interleaved(self.ctx, self.planner, self.executor, self.hidden)
        await run.run()
        self.result.tries = 1
        if run.problem and not self.executor.outputs:
            self.result.cannot = run.problem
            return False
        if self.executor.plan is not None:
            self._tell_planned(self.executor.plan)
        if run.problem:
            self.executor.fail("steps", run.problem)
        self.doubts = tuple(f"{name}: {doubt}" for name, doubts in run.doubts.items() for doubt in doubts)
        return True

    async def _replan(self, healthy: list[Node], why: str, step: AskContext) -> Checked:
        proposal = await self._planned(step, healthy, why)
        if proposal.cannot:
            raise QuestionError(proposal.cannot)
        return proposal.checked

    def _confirmed(self, plan: Plan) -> bool:
        """Does the user agree with the price? Nothing is run where not."""
        over = self.options.confirm_over
        if self.options.confirm is None and over is None:
            return True
        gate = self.ctx.gate
        price = self.ctx.workspace.model.price if self.ctx.workspace.model is not None else None
        recorded = getattr(self.options.router, "calls_of", None)
        plan_price = price_of(plan, self.ctx.workspace, self.ctx.sources, price, gate.calls_left, recorded)
        if plan_price.usd_most is not None and plan_price.usd_most <= (over or 0.0):
            return True
        view = PlanView(plan, {}, self.result.plan.operators)
        if self.options.confirm is not None:
            if self.options.confirm(plan_price, view):
                return True
            self.result.cannot = f"it was not confirmed: {plan_price}"
        else:
            self.result.cannot = f"it needs {plan_price}, more than confirm_over = {over:g}: raise it, or give confirm"
        return False

    # --------------------------------------------------------------------------------------------------------- the answer
    async def _write(self) -> None:
        """Writes the answer; where the model finds more is needed, what is missing is planned and run, at most twice."""
        for again in range(1 + self.options.limits.answers):
            findings = self._findings()
            plan = self.executor.plan
            assert plan is not None
            if not findings:
                self._note_found()
                ended = self.executor.limit and f"{self.executor.limit} was reached before the plan was done"
                self.result.cannot = "; ".join(filter(None, [ended, self.executor.why_failed])) or "nothing was found"
                return
            last = next((n for n in plan.nodes if n.kind is NodeKind.ANSWER), plan.nodes[-1])
            step = self.ctx.step(f"{last.name} {again + 1}")
            self.ctx.emit(NodeEvent("answer", "writing"))
            began = time.monotonic()
            answer = await aggregate(
                step,
                self.ctx.question,
                findings,
                style=self.options.style,
                hidden=self.hidden,
                write=self._writes(),
                pick=self.options.mode == "meta" and self.model.capabilities.small,
            )
            self._report_step(last, step, time.monotonic() - began, answer)
            if (
                not (answer.cannot and answer.need_more)
                or self.executor.replan is None
                or again == self.options.limits.answers
            ):
                break
            self.executor.replans += 1
            self.ctx.emit(NodeEvent(last.name, "replan", answer.cannot))
            before = dict(self.executor.outputs)
            await self.executor.again(f"the results do not answer the question yet: {answer.cannot}")
            assert self.executor.plan is not None
            await self.executor.run(self.executor.plan)
            if set(self.executor.outputs) == set(before):
                break
        self._keep(answer, findings)

    def _note_found(self) -> None:
        """Notes what was found before a limit, or a failure, ended the run."""
        run, plan = self.executor, self.executor.plan
        if plan is None or self.result.notes:
            return
        end = "the limit" if run.limit or self.ctx.gate.budget.exhausted else "it failed"
        findings = [self._finding(plan, n.name, run.outputs[n.name]) for n in plan.nodes if n.name in run.outputs]
        self.result.notes += [f"found before {end}: {f.node}: {in_words(f)}" for f in findings if not f.output.plots]

    def _writes(self) -> bool | None:
        """Does the model write the answer? The results of a small one stand side by side."""
        plain = self.options.aggregate is None and self.options.style == "short" and self.options.mode != "meta"
        return False if plain and self.model.capabilities.small else self.options.aggregate

    def _report_step(self, node: Node, step: AskContext, seconds: float, answer: Words) -> None:
        state = "done" if not answer.cannot else "failed"
        report = Step(node.name, node.kind.value, answer.text or answer.cannot, "the answer", state)
        report.problem, report.prompts, report.tries = answer.cannot, step.prompts, 1
        report.seconds, report.cost = seconds, step.cost
        self.executor.steps.append(report)

    def _findings(self) -> list[Finding]:
        """What the answer's inputs gave, with the sources they rest on; where some of them failed, what else is there."""
        plan = self.executor.plan
        if plan is None:
            return []
        outputs = self.executor.outputs
        to_failed = {i for node in plan.nodes if node.name in self.executor.failed for i in node.inputs}
        names = [n for n in plan.answer if n in outputs and n not in to_failed]  # a step to a part is not the part
        in_part = len(names) < len(plan.answer) if self.options.mode == "dag" else self.options.mode == "interleaved"
        if in_part and self.executor.failed:
            return []  # a part of it would pass for the whole
        for name in list(names):  # a plot is about the rows it shows
            if outputs[name].plots:
                names = [*(i for i in plan[name].inputs if i in outputs and i not in names), *names]
        return [self._finding(plan, name, outputs[name]) for name in names]

    def _finding(self, plan: Plan, name: str, output: Output) -> Finding:
        node = plan[name]
        question = node.description or node.body
        if node.kind is NodeKind.ADAPTER:  # as it was asked, with the answers of earlier sub-queries filled in
            question = next((step.body for step in reversed(self.executor.steps) if step.node == name), question)
        return Finding(name, question, output, self._sources(plan, node))

    def _sources(self, plan: Plan, node: Node) -> tuple[str, ...]:
        if node.kind is NodeKind.ADAPTER:
            sub = self.executor.outputs[node.name].sub if node.name in self.executor.outputs else None
            return (sub.sources if sub is not None else ()) or node.sources
        table_names = tables_named(node.body) if node.kind in forms.SELECTS else set()
        names = [s for s in self.ctx.sources if s.lower() in table_names]
        for name in node.inputs:
            if name in {n.name for n in plan.nodes}:
                names += self._sources(plan, plan[name])
        return tuple(dict.fromkeys(names))

    def _keep(self, answer: Words, findings: Sequence[Finding]) -> None:
        result = self.result
        result.text, result.cannot = answer.text, answer.cannot
        result.json = dict(answer.json)
        result.rests_on = answer.rests_on
        missing = [f"{name} has no answer: {brief(why, 200)}" for name, why in self.executor.failed.items()]
        caveats_ = self._caveats(result.rests_on or tuple(f.node for f in findings))
        result.notes = [*self.doubts, *self._nothing_fits(findings), *answer.notes, *missing, *caveats_]
        self._add_to_extra(result.notes)
        if answer.cannot:
            return
        findings = [f for f in findings if f.node in result.rests_on or f.output.plots]
        without_plots = [f for f in findings if not f.output.plots] or list(findings)
        read = self._read_by_others([f.node for f in without_plots])
        result.value = value_of([f for f in without_plots if f.node not in read])
        result.citations, result.unsupported = citations(f"{result.text}\n{result.json.get('details', '')}", findings)
        if result.unsupported:
            self._add_to_extra([f"figures that stand in no result: {', '.join(result.unsupported)}"])

    def _nothing_fits(self, findings: Sequence[Finding]) -> list[str]:
        """That what a small model's statements agree on is empty, also once its texts and images are read."""
        tables = [f.output.table for f in findings if f.node in self.result.rests_on]
        voted = self.most and self.options.plan is None and "empty" not in switched_off(self.options.without)
        if not voted or not tables or any("not sure" in doubt for doubt in self.doubts):
            return []
        empty = all(table is not None and is_empty(table) for table in tables)
        return ["not sure: nothing fits; a value may be written in another way in the data"] if empty else []

    def _add_to_extra(self, notes: Sequence[str]) -> None:
        extra = "; ".join(filter(None, [str(self.result.json.get("extra", "")), *notes]))
        self.result.json = {**self.result.json, "extra": extra} if notes else self.result.json

    def _read_by_others(self, names: Collection[str]) -> set[str]:
        """Those of some nodes that others of them read: steps to the answer, and not the answer."""
        plan = self.executor.plan
        return {i for n in (plan.nodes if plan is not None else ()) if n.name in names for i in n.inputs} & set(names)

    def _caveats(self, names: Sequence[str]) -> list[str]:
        """Remarks on the results of these nodes and on everything they were made from."""
        plan = self.executor.plan
        nodes = {node.name: node for node in plan.nodes} if plan is not None else {}
        read = {i for node in nodes.values() if node.kind is not NodeKind.ANSWER for i in node.inputs} & set(nodes)
        remarks: list[str] = []
        visited: list[str] = []
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name in visited or name not in self.executor.outputs:
                continue
            visited.append(name)
            output = self.executor.outputs[name]
            lines = caveats(output.outcome) + list(output.sub.notes if output.sub is not None else ())
            remarks += lines if name in names else [f"{name}: {line}" for line in lines]
            if name in read and (cut := left_out(self._statement(nodes[name], output), output.rows)):
                remarks.append(f"{name}: {cut}")
            waiting += nodes[name].inputs if name in nodes else ()
        return list(dict.fromkeys(remarks))

    @staticmethod
    def _statement(node: Node, output: Output) -> str:
        return node.body if node.kind in forms.SELECTS else (output.sub.uql or "") if output.sub is not None else ""

    async def _trace(self) -> None:
        """The rows behind each cell that the answer cites, and of its results, while they can still be read; at most 30."""
        plan, outputs = self.executor.plan, self.executor.outputs
        if plan is None:
            return
        cited = [(c.node, c.row) for c in self.result.citations]
        result_cells = [(n, i) for n in plan.answer if n in outputs for i in range(outputs[n].rows or 0)]
        node_names = {n.name for n in plan.nodes}
        cells = [
            cell for cell in list(dict.fromkeys([*cited, *result_cells[:TRACED]]))[:TRACED] if cell[0] in node_names
        ]
        with self.ctx.workspace.runner() as run:
            lineage = Lineage(run, plan, outputs)
            for cell in cells:
                self.result.behind[cell] = await asyncio.to_thread(lineage.rows_behind, *cell)

    def _finish(self) -> None:
        result, run = self.result, self.executor
        result.notes += self.scope.left_out
        self._add_to_extra(self.scope.left_out)
        nodes, behind = (run.plan.nodes, set(run.plan.answer)) if run.plan is not None else ((), set())
        place = {node.name: i for i, node in enumerate(nodes)}  # of the plan, whichever node was done first
        outputs = dict(sorted(run.outputs.items(), key=lambda item: place.get(item[0], len(place))))
        result.steps, result.results, result.replans = run.steps, outputs, run.replans
        states = {step.node: step.state for step in run.steps}
        result.plan = PlanView(run.plan or self.options.plan, states, result.plan.operators)
        behind -= self._read_by_others(behind & set(outputs))
        plot_inputs = {name for n in nodes if n.name in behind and n.kind is NodeKind.PLOT for name in n.inputs}
        for name, output in outputs.items():
            if output.table is not None and (name in behind or name in plot_inputs):
                result.tables[name] = output.table
            result.plots += output.plots
        result.cost = self.ctx.cost
        partial = self.ctx.gate.budget.exhausted or (
            "budget" if any(o.outcome is not None and o.outcome.partial for o in run.outputs.values()) else ""
        )
        result.partial = result.partial or partial or run.limit
        if self.ctx.prompts:
            state = "done" if result.plan.plan is not None or not result.cannot else "failed"
            before = Step(
                "plan", "plan", result.plan.text, "the plan", state, prompts=self.ctx.prompts, tries=result.tries
            )
            before.problem = result.cannot if state == "failed" else ""
            before.cost = self.ctx.gate.cost
            result.steps.insert(0, before)
