"""The preset dictionary of zlib, with the text that small records have in common.

A delta of a few hundred bytes is mostly names: of fields, of roles, of the parts of the delta.
With this text as a preset dictionary (RFC 1950, section 2.2), only new text takes space: half of a
record without its own text.

Every stored record needs exactly these bytes. They must never change; another text would be
another format version.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BYTES_DICTIONARY", "DICTIONARY"]

# Messages of LangChain, in the form of `integrations.langgraph.checkpoints.texts`.
_HUMAN: Final = "\u00c8\\u0003\\u0004\\u0005\u0094\ue003\u00da\\u0002\U000f00d9\ue000-\ue012"
_AI: Final = "\u00c8\\u0005\u0083\\u0005\u0094\ue004\u00da\\u0004\u00b0\U000f00d9\ue001-\ue002"

# The most useful parts come last: zlib stores distances, and short ones take less space.
_PARTS: Final = (
    '"errors":[],"metadata":{"source":"',
    '"tool_executions":["l",[,[{"tool_name":"","tool_call_id":"call_","arguments":{"query":"',
    '","result":"","error":null,"duration_ms":,"idempotent":false',
    '"additional_kwargs":{},"response_metadata":{},"usage_metadata":{"input_tokens":',
    '"started_at":["=","2026-01-01T00:00:00Z"],"updated_at":["=","2026-',
    '{"role":"system","content":"","metadata":{}}',
    '{"role":"assistant","content":"","tool_calls":[],"tool_call_id":null,"name":null,"metadata":{}}',
    '"run_id":["=","","iteration":["=",1]',
    '["d",{"messages":["l",[,[{"role":"user","content":"","id":""}]]]},["iteration"]]',
    '{"role":"assistant","tool_calls":[{"id":"call_","name":"search","arguments":{"query":""}}],"id":"',
    '{"role":"tool","content":"","tool_call_id":"call_","name":"","id":"',
    '{"role":"assistant","content":"","id":"',
    '["d",{"c":["d",{"at":["=",179],"n":["d",{"__start__":["=",3]}],"u":["l",[-1,["__start__"]]]}],',
    '"p":["=","1f1e6529-"],"v":["d",{"__start__":["=","\u0081\u00a8messages\u0091'
    + _HUMAN
    + '"]}],"t":["l",[2,[""]]]},["b"]]',
    '["d",{"c":["d",{"at":["=",179],"n":["=",{"__start__":3,"messages":3,"branch:to:model":3}],',
    '"s":["d",{"__start__":["=",{"__start__":3}]}],"u":["l",[-1,["branch:to:model"],["messages"]]]}],',
    '"p":["=","1f1e6529-006"],"v":["d",{"messages":["d",{"l":["l",[2,["' + _HUMAN + '"]]]}],',
    '"branch:to:model":["=",null]},["__start__"]],',
    '"b":["=",[["-","^__start__",{"0":["messages",{"l":["'
    + _HUMAN
    + '"]}],"1":["branch:to:model",null]}]]]}]',
    '["d",{"c":["d",{"at":["=",179],"n":["d",{"messages":["=",3],"branch:to:model":["=",3]}],',
    '"s":["d",{"model":["=",{"branch:to:model":3}]}],"u":["l",[-1,1]]}],"p":["=","1f1e6529-006"],',
    '"v":["d",{"messages":["d",{"l":["l",[2,["'
    + _AI
    + '"]]]}]},["branch:to:model"]],"b":["l",[{"~":["l",[-2,',
    '["-","^model"],{"~":["d",{"0":["l",[1,{"~":["d",{"l":["l",[-1,["'
    + _AI
    + '"]]]}]}]]},["1"]]}]]}]],',
    '"t":["l",[2,[""]]]}]',
)

DICTIONARY: Final = "".join(_PARTS).encode()

# Messages of LangChain, as LangGraph's serializer writes them.
_HUMAN_BYTES: Final = (
    b"\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xda\x02X"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$"
)
_AI_BYTES: Final = (
    b"\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xda\x04\xb0"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9$"
    b"\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json"
)

_TOOL_BYTES: Final = (
    b"\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xb1additional_kwargs\x80"
    b"\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa2id\xc0\xactool_call_id\xbdcall_"
    b"\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json"
)
_CALL_BYTES: Final = (
    b"\xb1response_metadata\x83\xabtoken_usage\xaamodel_name\xadfinish_reason\xa4stop"
    b"\xaatool_calls\x91\x84\xa4name\xa4args\x81\xa5query\xa2id\xbdcall_\xa4type\xa9tool_call"
    b"\xaeusage_metadata\x83\xacinput_tokens\xadoutput_tokens\xactotal_tokens"
)

_BYTES_PARTS: Final = (
    b"\x94\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content",
    _TOOL_BYTES,
    _CALL_BYTES,
    _AI_BYTES,
    _HUMAN_BYTES,
    b'["\\u0000",[831],["d",{"c":["d",{"at":["=",1790000000],"n":["=",{"__start__":3}],',
    b'"u":["=",["__start__"]]}],"p":["=","1f1e6529-0069-6"],"v":["d",{"__start__":["=",{"d":',
    b'["messages",{"l":[1]}]}]}],"t":["d",{"1":["=","\\u0000"]}]},["b"]]]',
    b'"s":["d",{"__start__":["=",{"__start__":3}]}],"u":["l",[-1,["branch:to:model","messages"]]]}],',
    b'"v":["d",{"messages":["d",{"l":["l",[2,[1]]]}],"branch:to:model":["=",null]},["__start__"]],',
    b'"b":["=",[["-","^__start__",{"0":["messages",{"l":[1]}],"1":["branch:to:model",null]}]]]}]]',
    b'["\\u0000",[1446],["d",{"c":["d",{"at":["=",179],"n":["d",{"messages":["=",3],',
    b'"branch:to:model":["=",3]}],"s":["d",{"model":["=",{"branch:to:model":3}]}],"u":["l",[-1,1]]}],',
    b'"p":["=","1f1e6529-006"],"t":["d",{"1":["=","\\u0000"]}],"v":["d",{"messages":["d",{"l":["l",',
    b'[2,[1]]]}]},["branch:to:model"]],"b":["l",[{"~":["l",[-2,["-","^model"],{"~":["d",{"0":["l",',
    b'[1,{"~":["d",{"l":["l",[-1,[1]]]}]}]]},["1"]]}]]}]]}]]',
)

BYTES_DICTIONARY: Final = b"".join(_BYTES_PARTS)
"""The dictionary of a frame of JSON and bytes; like the other, it must never change."""
