"""Values that a file holds as text: how pydantic reads, writes and describes them.

A class says how its text is parsed; everything between that and pydantic is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from testbed.errors import UnitError


class Written(ABC):
    """A value whose text is read by ``parse`` and written by ``str``."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Read ``text``. Raises UnitError."""

    @classmethod
    @abstractmethod
    def not_text(cls, value: object) -> UnitError:
        """What is wrong with a value of a file that is no text."""

    @classmethod
    @abstractmethod
    def json_schema(cls) -> JsonSchemaValue:
        """What an editor should know about the text (JSON Schema)."""

    @classmethod
    def in_words(cls, fault: UnitError) -> str:
        """A fault as one line beside its place in the file."""
        return f"{fault.subject} {fault.cause}; {fault.remedy}".rstrip("; ")

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        try:
            if isinstance(value, str):
                return cls.parse(value)
            raise cls.not_text(value)
        except UnitError as fault:
            raise PydanticCustomError("unit", "{text}", {"text": cls.in_words(fault)}) from fault

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[object], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return cls.json_schema()
