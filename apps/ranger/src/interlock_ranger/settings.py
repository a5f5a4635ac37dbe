"""Where RANGER finds its fires, documents and tables: `[app.ranger]` of interlock.toml, or RANGER_* variables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from interlock.config import LoadedSettings, SettingsSource, setting

HERE = Path(__file__).parent


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Folders; relative ones are relative to the file that names them."""

    data: Annotated[str, setting("the folder of fires (default: synthetic ones)", anchor="file")] = str(HERE / "data")
    corpus: Annotated[str, setting("the folder of documents that NEPA questions are answered from", anchor="file")] = (
        str(HERE / "corpus")
    )
    tables: Annotated[
        tuple[str, ...], setting("folders whose CSV files may be read, beside that of the fires", anchor="file")
    ] = ()


SOURCE = SettingsSource(kind=Settings, file="interlock.toml", table="app.ranger", prefix="RANGER_")


def load_settings() -> LoadedSettings[Settings]:
    """The settings of here and now."""
    return SOURCE.load()
