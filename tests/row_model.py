"""A model in this process that answers question by question: what the tests' own models have in common."""

from __future__ import annotations

from uql.llm.providers.base import Capabilities, Limits, Price, Reply


class RowModel:
    """A provider; a test gives it `_one(question, row) -> Answer`."""

    name, is_local = "row-model", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def version(self, question):
        return "1"

    def tokens_at_most(self, request):
        return 10, 10

    async def aclose(self):
        return None

    async def answer(self, request):
        return Reply(tuple(self._one(q, request.row) for q in request.questions), 1, 1)
