"""The known models are where the catalogue says, as the index that pip uses has them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from locus_memory.errors import ModelUnavailableError
from locus_memory.retrieval.embedders import LocalEmbedder
from locus_memory.retrieval.embedders.models.catalogue import CARRIED, models_folder
from locus_memory.retrieval.embedders.models.fetching import fetch_models, is_whole


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Fetch all models; skip where pip reaches no index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCUS_MEMORY_MODELS", str(tmp_path_factory.mktemp("models")))
        try:
            fetch_models(CARRIED.values(), lambda _model, _there: None)
            yield {name: models_folder() / name for name in CARRIED}
        except ModelUnavailableError as error:
            if "does not reach" not in str(error):
                raise
            pytest.skip(str(error))


def test_all_models_are_fetched_and_whole(folders):
    assert all(map(is_whole, CARRIED.values()))
    for name, folder in folders.items():
        size = sum(path.stat().st_size for path in folder.iterdir())
        # The licences of the package are there as well.
        assert CARRIED[name].size <= size < CARRIED[name].size + 50_000


async def test_the_fetched_model_embeds(folders):
    if not (find_spec("onnxruntime") and find_spec("tokenizers")):
        pytest.skip("nothing runs a model: it needs the extra 'local'")
    async with LocalEmbedder() as embedder:
        [vector] = await embedder.embed(["A boat lies in a shed."])
    assert len(vector) == embedder.dimension == 384
