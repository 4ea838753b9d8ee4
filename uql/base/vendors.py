"""The vendors of models, a row each: where they serve, the variable of their key, their name in tables of prices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who serves models, or vectors, under a kind of model's name.

    Attributes:
        title: for messages.
        url: of its API; "": that of the variable `url_env`.
        key_env: the variable of its key; "": it wants none.
        seller: its name in genai-prices and in prices.toml; "": its models have no price per token.
    """

    title: str
    url: str
    key_env: str = ""
    seller: str = ""
    url_env: str = ""


VENDORS = {
    "openai": Vendor("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "openai"),
    "anthropic": Vendor("Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic"),
    "openrouter": Vendor("OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter"),
    "gemini": Vendor("Gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", "google"),
    "mistral": Vendor("Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    "deepseek": Vendor("DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek"),
    "groq": Vendor("Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    "xai": Vendor("xAI", "https://api.x.ai/v1", "XAI_API_KEY", "x-ai"),
    "azure": Vendor("Azure OpenAI", "", "AZURE_OPENAI_API_KEY", "azure", url_env="AZURE_OPENAI_ENDPOINT"),
    "voyage": Vendor("Voyage", "https://api.voyageai.com/v1", "VOYAGE_API_KEY", "voyageai"),
    "systemone": Vendor("TypeSafe", "https://api.typesafe.ai/v1", "JEV_API_KEY", "typesafe"),
    "ollama": Vendor("Ollama", "http://127.0.0.1:11434/v1", url_env="OLLAMA_HOST"),
}
