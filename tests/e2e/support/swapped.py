"""Programs written for langmem, as a server loads them."""

from langchain_openai import ChatOpenAI

from tests.langmem_programs import one_key as build_one_key
from tests.langmem_programs import two_keys as build_two_keys

_model = ChatOpenAI(model="stub", max_retries=0)  # base URL and key come from the server's environment
two_keys = build_two_keys(_model).compile()
one_key = build_one_key(_model).compile()
