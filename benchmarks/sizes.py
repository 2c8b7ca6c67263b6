"""What an assistant of the demo's dispatcher has to read: bytes, and tokens of a public tokenizer.

python -m benchmarks.sizes
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

from tests.demo.state import Demo

READ = {
    "page": "a page of 25 flights",
    "description": "describe_model flights.flight",
    "tools": "tools/list",
    "action": "an action among them",
}


def main() -> None:
    # Its vocabulary comes with the package, so that nothing is loaded from elsewhere.
    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    with TemporaryDirectory() as directory:
        demo = Demo(Path(directory) / "state")
        demo.manage("demo", "--no-serve")
        with demo.inside() as inside:
            texts = inside.ask("texts_for", "dispatcher")
    for name, what in READ.items():
        tokens = tokenizer.encode(texts[name], bos=False, eos=False)
        print(f"{what:30} {len(texts[name].encode()):7,} bytes {len(tokens):7,} tokens of Tekken")


if __name__ == "__main__":
    main()
