"""A hospital of EHRXQA's shape: 18 tables, chest X-rays whose findings are labels, and 100 questions in its three scopes.

EHRXQA's patients are MIMIC's and stay where they are; `ehrxqa_templates` has its question templates alone. Patients, stays, events, reports
and pictures are made here from a seed. A picture is a pattern made from its study's number: what it shows stands in the labels, from
which the reader answers. Scopes: one picture (image), the tables (table), both (table and image). Each question has its answer by SQL over
tables and labels, and a NeuralSQL-like plan: one statement, no DAG. Source: Bae et al., EHRXQA (2023).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb

from uql.benchmarks.nl import plans
from uql.benchmarks.nl.worlds import World, stand_in, table_of
from uql.benchmarks.sembench.scenarios import write_oracle

PATIENTS = 60
FINDINGS = ("edema", "pneumonia", "cardiomegaly", "pneumothorax", "atelectasis", "fracture")
PLACES = ("left lung", "right lung", "cardiac silhouette", "upper mediastinum")
DRUGS = ("aspirin", "heparin", "insulin", "furosemide", "vancomycin", "morphine")
PROCEDURES = ("intubation", "central venous catheter", "hemodialysis", "thoracentesis")
DIAGNOSES = ("sepsis", "heart failure", "copd", "hypertension", "diabetes")
LABS = ("glucose", "creatinine", "potassium", "hemoglobin")
MICROBES = ("escherichia coli", "staphylococcus aureus", "yeast")
START = date(2100, 1, 1)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        id, template: of `ehrxqa_templates`, whose words it fills.
        scope: image, table, or table+image.
        words: as asked.
        sql: the answer, over tables and labels.
        uql: a NeuralSQL-like plan, over the tables and pictures alone.
        slots: what fills the template.
    """

    id: str
    template: int
    scope: str
    words: str
    sql: str
    uql: str
    slots: Mapping[str, Any]


# ------------------------------------------------------------------------------------------------------------- the tables
SCHEMA = {
    "patients": "subject_id BIGINT, gender VARCHAR, dob DATE, dod DATE",
    "admissions": "hadm_id BIGINT, subject_id BIGINT, admittime DATE, dischtime DATE, "
    "admission_type VARCHAR, insurance VARCHAR, age BIGINT",
    "icustays": "stay_id BIGINT, hadm_id BIGINT, subject_id BIGINT, first_careunit VARCHAR, intime DATE, outtime DATE",
    "transfers": "transfer_id BIGINT, hadm_id BIGINT, subject_id BIGINT, careunit VARCHAR, intime DATE",
    "d_icd_diagnoses": "icd_code VARCHAR, long_title VARCHAR",
    "d_icd_procedures": "icd_code VARCHAR, long_title VARCHAR",
    "d_labitems": "itemid BIGINT, label VARCHAR",
    "d_items": "itemid BIGINT, label VARCHAR, linksto VARCHAR",
    "diagnoses_icd": "hadm_id BIGINT, subject_id BIGINT, icd_code VARCHAR, charttime DATE",
    "procedures_icd": "hadm_id BIGINT, subject_id BIGINT, icd_code VARCHAR, charttime DATE",
    "labevents": "hadm_id BIGINT, subject_id BIGINT, itemid BIGINT, charttime DATE, valuenum DOUBLE",
    "prescriptions": "hadm_id BIGINT, subject_id BIGINT, drug VARCHAR, starttime DATE, dose DOUBLE, route VARCHAR",
    "microbiologyevents": "hadm_id BIGINT, subject_id BIGINT, charttime DATE, spec_type VARCHAR, org_name VARCHAR",
    "chartevents": "hadm_id BIGINT, subject_id BIGINT, itemid BIGINT, charttime DATE, valuenum DOUBLE",
    "inputevents": "hadm_id BIGINT, subject_id BIGINT, itemid BIGINT, starttime DATE, amount DOUBLE",
    "outputevents": "hadm_id BIGINT, subject_id BIGINT, itemid BIGINT, charttime DATE, amount DOUBLE",
    "cost": "hadm_id BIGINT, subject_id BIGINT, event_type VARCHAR, cost DOUBLE",
    "cxr_studies": "study_id BIGINT, subject_id BIGINT, hadm_id BIGINT, studydatetime DATE, viewposition VARCHAR, image BLOB",
}


LABELS = "study_id BIGINT, " + ", ".join(f"{f}_{p.replace(' ', '_')} BOOLEAN" for f in FINDINGS for p in PLACES)


def tables(seed: int = 0, patients: int = PATIENTS) -> dict[str, list[Row]]:
    """The rows of the 18 tables, and of `labels`: one row a study, one column for each finding at each place."""
    rng = random.Random(seed)
    made: dict[str, list[Row]] = {name: [] for name in (*SCHEMA, "labels")}
    made["d_icd_diagnoses"] = [(f"D{i}", name) for i, name in enumerate(DIAGNOSES)]
    made["d_icd_procedures"] = [(f"P{i}", name) for i, name in enumerate(PROCEDURES)]
    made["d_labitems"] = [(100 + i, name) for i, name in enumerate(LABS)]
    made["d_items"] = [
        (200, "heart rate", "chartevents"),
        (201, "saline", "inputevents"),
        (202, "urine", "outputevents"),
    ]
    stay = 0
    for patient in range(1, patients + 1):
        subject = 10_000 + patient
        born = START - timedelta(days=365 * rng.randint(20, 89))
        made["patients"].append((subject, rng.choice("MF"), born, None))
        day = START + timedelta(days=rng.randint(0, 300))
        for _ in range(rng.randint(1, 3)):
            stay += 1
            hadm, out = 20_000 + stay, day + timedelta(days=rng.randint(2, 14))
            age = (day - born).days // 365
            kind, pays = rng.choice(("EMERGENCY", "ELECTIVE")), rng.choice(("Medicare", "Private", "Other"))
            made["admissions"].append((hadm, subject, day, out, kind, pays, age))
            made["transfers"].append((40_000 + stay, hadm, subject, rng.choice(("Medicine", "Surgery")), day))
            if rng.random() < 0.5:
                made["icustays"].append((30_000 + stay, hadm, subject, rng.choice(("MICU", "SICU", "CCU")), day, out))
            _events(made, rng, hadm, subject, day, out)
            day = out + timedelta(days=rng.randint(10, 200))
    return made


def _events(made: dict[str, list[Row]], rng: random.Random, hadm: int, subject: int, day: date, out: date) -> None:
    """Diagnoses, drugs, measurements and studies of one stay."""

    def when() -> date:
        return day + timedelta(days=rng.randint(0, (out - day).days))

    for name, count in (("diagnoses_icd", rng.randint(1, 3)), ("procedures_icd", rng.randint(0, 2))):
        code = "D" if name == "diagnoses_icd" else "P"
        known = len(DIAGNOSES) if code == "D" else len(PROCEDURES)
        made[name] += [(hadm, subject, f"{code}{i}", when()) for i in rng.sample(range(known), count)]
    for item in range(len(LABS)):
        made["labevents"] += [
            (hadm, subject, 100 + item, when(), round(rng.uniform(1, 200), 1)) for _ in range(rng.randint(0, 2))
        ]
    for drug in rng.sample(DRUGS, rng.randint(1, 3)):
        made["prescriptions"].append((hadm, subject, drug, when(), float(rng.randint(1, 50)), rng.choice(("PO", "IV"))))
    if rng.random() < 0.4:
        made["microbiologyevents"].append((hadm, subject, when(), "blood culture", rng.choice((*MICROBES, None))))
    made["chartevents"].append((hadm, subject, 200, when(), float(rng.randint(50, 130))))
    made["inputevents"].append((hadm, subject, 201, when(), float(rng.randint(100, 900))))
    made["outputevents"].append((hadm, subject, 202, when(), float(rng.randint(100, 900))))
    made["cost"] += [
        (hadm, subject, kind, round(rng.uniform(10, 900), 2)) for kind in ("diagnoses_icd", "prescriptions")
    ]
    for _ in range(rng.randint(1, 2)):
        study = 50_000 + len(made["cxr_studies"])
        made["cxr_studies"].append((study, subject, hadm, when(), rng.choice(("AP", "PA")), stand_in(f"study {study}")))
        seen = tuple(rng.random() < 0.22 for _ in FINDINGS for _ in PLACES)
        made["labels"].append((study, *seen))


def label(finding: str, place: str) -> str:
    return f"{finding}_{place.replace(' ', '_')}"


def asked(finding: str, place: str | None = None) -> str:
    """The words with which a plan asks a picture for a finding."""
    return f"{{image}} shows {finding}" + (f" in the {place}" if place else "")


def world(work: Path, seed: int = 0) -> World:
    """The 18 tables and the reader of the pictures. Writes labels and reader into `work`."""
    with judge(seed) as con:
        con.sql("SELECT study_id, image FROM cxr_studies").write_parquet(str(work / "ehrxqa.parquet"))
        con.sql("SELECT * FROM labels").write_parquet(str(work / "ehrxqa_labels.parquet"))
        held = {name: table_of(con, f"SELECT * FROM {name}") for name in SCHEMA}
    answers = {asked(f, p): label(f, p) for f in FINDINGS for p in PLACES}
    answers |= {asked(f): anywhere(f) for f in FINDINGS}
    answers |= {asked("any abnormality", p): abnormal(p) for p in PLACES}
    oracle = write_oracle(
        work / "ehrxqa.toml", work / "ehrxqa.parquet", work / "ehrxqa_labels.parquet", "study_id", answers, 0.0
    )
    comments = {
        "cxr_studies": "chest X-ray studies",
        "cxr_studies.image": "picture of the chest",
        "admissions": "stays in the hospital",
    }
    return World("ehrxqa", held, oracle, comments)


def abnormal(place: str) -> str:
    return "(" + " OR ".join(label(finding, place) for finding in FINDINGS) + ")"


def anywhere(finding: str) -> str:
    return "(" + " OR ".join(label(finding, place) for place in PLACES) + ")"


# ---------------------------------------------------------------------------------------------------------- the questions
def questions(shared: Path, seed: int = 0, count: int = 100) -> list[Question]:
    """100 questions: filled templates, as many of each scope as possible, in a fixed order for a seed."""
    with duckdb.connect() as con:
        path = shared / "ehrxqa_templates" / "templates.parquet"
        known = dict(con.execute(f"SELECT template_id, question_template FROM '{path}'").fetchall())
    rng = random.Random(seed + 1)
    made = tables(seed)
    makers = [maker for maker in _MAKERS if maker[0] in known]
    found: list[Question] = []
    said: set[str] = set()
    turn = 0
    while len(found) < count and turn < 50 * count:
        template, scope, make = makers[turn % len(makers)]
        turn += 1
        slots, sql, uql = make(rng, made)
        words = filled(known[template], slots)
        if words not in said:
            said.add(words)
            found.append(Question(f"ehrxqa-{len(found):03d}", template, scope, words, sql, uql, slots))
    return found


def fixtures(asked: Sequence[Question]) -> list[plans.Fixture]:
    """Plans of the questions in steps, written apart from their SQL (`ehrxqa_plans.uql`): a plan a template, its slots filled."""
    text = (Path(__file__).parent / "ehrxqa_plans.uql").read_text(encoding="utf-8")
    known = {int(part.split(":", 1)[0]): part.partition("\n")[2] for part in text.split("-- question: ")[1:]}
    made = []
    for question in asked:
        body = known[question.template]
        for name, value in question.slots.items():
            body = body.replace(f"[{name}]", str(value))
        made.append(f"-- question: {question.id}: {question.words}\n{body}")
    return plans.read_text("\n".join(made))


def judge(seed: int = 0) -> duckdb.DuckDBPyConnection:
    """A DuckDB with the tables and the labels, in which a question's SQL gives its answer."""
    import pyarrow as pa

    made = tables(seed)
    con = duckdb.connect()
    for name, shape in (*SCHEMA.items(), ("labels", LABELS)):
        con.execute(f"CREATE TABLE {name} ({shape})")
        con.register(
            "__rows", pa.table({f"c{i}": list(values) for i, values in enumerate(zip(*made[name], strict=True))})
        )
        con.execute(f"INSERT INTO {name} SELECT * FROM __rows")
        con.unregister("__rows")
    return con


Made = dict[str, list[Row]]
Slots = dict[str, Any]
Maker = Callable[[random.Random, Made], tuple[Slots, str, str]]
STUDIES = "cxr_studies JOIN labels USING (study_id)"


def filled(template: str, slots: Slots) -> str:
    """A template with its slots filled; filters of time that have no slot are left out.

    >>> filled("has_verb patient {patient_id} been given {drug_name} [time_filter_global1] ?", {"patient_id": 7, "drug_name": "aspirin"})
    'has patient 7 been given aspirin?'
    """
    words = template.replace("has_verb", "has").replace("is_verb", "is")
    for name, value in slots.items():
        for form in (f"${{{name}}}", f"{{{name}}}", f"[{name}]"):
            words = words.replace(form, str(value))
    words = " ".join(re.sub(r"\[[a-z0-9_]+\]", "", words).split())
    return re.sub(r" ([?.,])", r"\1", words)


def _patient(rng: random.Random, made: Made) -> int:
    return int(rng.choice(made["cxr_studies"])[1])


def _study(rng: random.Random, made: Made) -> int:
    return int(rng.choice(made["cxr_studies"])[0])


def _is_there(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    study, finding, place = _study(rng, made), rng.choice(FINDINGS), rng.choice(PLACES)
    return (
        {"study_id": study, "attribute": finding, "object": place},
        f"SELECT {label(finding, place)} AS answer FROM labels WHERE study_id = {study}",
        f'SELECT CASE WHEN "{asked(finding, place)}" THEN true ELSE false END AS answer FROM cxr_studies WHERE study_id = {study}',
    )


def _is_abnormal(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    study, place = _study(rng, made), rng.choice(PLACES)
    shown = asked("any abnormality", place)
    return (
        {"study_id": study, "object": place},
        f"SELECT ({abnormal(place)}) AS answer FROM labels WHERE study_id = {study}",
        f'SELECT CASE WHEN "{shown}" THEN true ELSE false END AS answer FROM cxr_studies WHERE study_id = {study}',
    )


def _count_studies(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    patient, finding = _patient(rng, made), rng.choice(FINDINGS)
    return (
        {"patient_id": patient, "attribute": finding},
        f"SELECT count(*) AS answer FROM {STUDIES} WHERE subject_id = {patient} AND {anywhere(finding)}",
        f'SELECT COUNT(*) AS answer FROM cxr_studies WHERE subject_id = {patient} AND "{asked(finding)}"',
    )


def _had_after_drug(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    drug, finding, patient = rng.choice(DRUGS), rng.choice(FINDINGS), _patient(rng, made)
    join = "JOIN prescriptions p ON p.subject_id = c.subject_id"
    where = f"c.subject_id = {patient} AND p.drug = '{drug}' AND c.studydatetime >= p.starttime"
    return (
        {"patient_id": patient, "drug_name": drug, "category": finding},
        f"SELECT count(*) > 0 AS answer FROM cxr_studies c JOIN labels l USING (study_id) {join} WHERE {where} AND {anywhere(finding)}",
        f'SELECT COUNT(*) > 0 AS answer FROM cxr_studies c {join} WHERE {where} AND "{asked(finding)}"',
    )


def _had_after_procedure(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    name, finding, place = rng.choice(PROCEDURES), rng.choice(FINDINGS), rng.choice(PLACES)
    patient = int(rng.choice(made["procedures_icd"])[1])
    join = "JOIN procedures_icd p ON p.subject_id = c.subject_id JOIN d_icd_procedures i ON i.icd_code = p.icd_code"
    where = f"c.subject_id = {patient} AND i.long_title = '{name}' AND c.studydatetime >= p.charttime"
    return (
        {"patient_id": patient, "procedure_name": name, "category": finding, "object": place},
        f"SELECT count(*) > 0 AS answer FROM cxr_studies c JOIN labels l USING (study_id) {join} WHERE {where} AND {label(finding, place)}",
        f'SELECT COUNT(*) > 0 AS answer FROM cxr_studies c {join} WHERE {where} AND "{asked(finding, place)}"',
    )


def _count_visits(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    patient = _patient(rng, made)
    text = f"SELECT COUNT(*) AS answer FROM admissions WHERE subject_id = {patient}"
    return {"patient_id": patient}, text, text


def _drug_patients(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    drug = rng.choice(DRUGS)
    text = f"SELECT COUNT(DISTINCT subject_id) AS answer FROM prescriptions WHERE drug = '{drug}'"
    return {"drug_name": drug}, text, text


def _lab_extreme(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    lab, patient = rng.choice(LABS), _patient(rng, made)
    way = rng.choice(("MAX", "MIN", "AVG"))
    text = (
        f"SELECT {way}(e.valuenum) AS answer FROM labevents e JOIN d_labitems i ON i.itemid = e.itemid "
        f"WHERE i.label = '{lab}' AND e.subject_id = {patient}"
    )
    words = {"MAX": "maximum", "MIN": "minimum", "AVG": "average"}[way]
    return {"lab_name": lab, "patient_id": patient, "agg_function": words}, text, text


def _diagnosed(rng: random.Random, made: Made) -> tuple[Slots, str, str]:
    name = rng.choice(DIAGNOSES)
    text = (
        "SELECT DISTINCT d.subject_id AS answer FROM diagnoses_icd d JOIN d_icd_diagnoses i ON i.icd_code = d.icd_code "
        f"WHERE i.long_title = '{name}' ORDER BY answer"
    )
    return {"diagnosis_name": name}, text, text


_MAKERS: Sequence[tuple[int, str, Maker]] = (  # template, scope, what fills it and answers it
    (1101, "image", _is_there),
    (1102, "image", _is_abnormal),
    (3303, "table+image", _count_studies),
    (5124, "table+image", _had_after_drug),
    (5111, "table+image", _had_after_procedure),
    (114, "table", _count_visits),
    (147, "table", _drug_patients),
    (45, "table", _lab_extreme),
    (131, "table", _diagnosed),
)


@dataclass(frozen=True, slots=True)
class EhrRow:
    """One question answered by its NeuralSQL-like statement."""

    question: str
    scope: str
    right: bool
    calls: int
    problem: str = ""


def run(shared: Path, work: Path, *, seed: int = 0, count: int = 100) -> list[EhrRow]:
    """Answers the questions by one statement each, with the reader of the labels, and compares with SQL over the labels."""
    import uql
    from uql.base.errors import UQLError

    made = world(work, seed)
    asked_for = questions(shared, seed, count)
    rows = []
    with uql.connect(model=f"oracle:{made.oracle}", ledger=":memory:", budget="all") as con, judge(seed) as truth:
        made.fill(con)
        for question in asked_for:
            wanted = truth.execute(question.sql).fetchall()
            try:
                result = con.uql(question.uql)
                right = [tuple(map(str, row)) for row in result.fetchall()] == [tuple(map(str, row)) for row in wanted]
                rows.append(EhrRow(question.id, question.scope, right, result.cost.calls + result.cost.cached))
            except UQLError as error:
                rows.append(EhrRow(question.id, question.scope, False, 0, str(error).splitlines()[0]))
    return rows


def report(rows: Sequence[EhrRow]) -> str:
    """Right answers by scope."""
    lines = [
        f"ehrxqa (made here, one statement a question): {sum(r.right for r in rows)} of {len(rows)} equal SQL over the labels"
    ]
    for scope in ("image", "table", "table+image"):
        held = [r for r in rows if r.scope == scope]
        if held:
            calls = sum(r.calls for r in held) / len(held)
            lines.append(
                f"  {scope:<12} {sum(r.right for r in held):>3} of {len(held):<3} {calls:>6.1f} calls a question"
            )
    return "\n".join(lines + [f"  wrong: {r.question} {r.problem}" for r in rows if not r.right])
