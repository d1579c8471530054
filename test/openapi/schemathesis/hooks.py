"""What a caller does whom the document cannot tell it in JSON Schema, and what of a valid request may be refused."""

import base64
import os
import re
import uuid

import schemathesis

UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

# The ids of what is there: with any other id a path is a 404 and nothing else.
THERE = {
    "wallet_id": os.environ["WALLET"],
    "network_id": os.environ["SECOND_NETWORK"],
    "/v1/wallets/{wallet_id}/rules/{id}": os.environ["RULE"],
    "/v2/admin/tokens/{id}": os.environ["ASSET"],
}

UNIQUE = {"wallet_address", "email", "external_id"}

# What the descriptions say and JSON Schema cannot: digits, levels, conditions, and halves of characters.
SAID = ("significant digits", "deep", "64 conditions", "lone surrogate")

# Statuses that a valid request gets for what it meets: If-Match, and MCP, which has no streams or sessions.
MET = {"replaceWalletRule": 412, "openMcpStream": 405, "openMcpStreamBelow": 405, "endMcpSession": 405}


@schemathesis.hook
def before_call(context, case, kwargs):
    for name, value in (case.path_parameters or {}).items():
        if isinstance(value, str) and UUID.fullmatch(value):
            case.path_parameters[name] = THERE.get(name) or THERE[case.operation.path]
    if case.operation.path.startswith("/v2/oauth/"):
        name_client(case)
    if case.operation.definition.raw["operationId"] == "migrateUser" and isinstance(case.body, dict):
        case.body = {name: fresh(value) if name in UNIQUE else value for name, value in case.body.items()}


def fresh(value):
    """A user is migrated once."""
    return f"{uuid.uuid4().hex}-{value}"[:128] if isinstance(value, str) and value.strip() else value


def name_client(case):
    """A client is named once: by the body, or by HTTP Basic. A form has texts, each once, and none that is empty."""
    if not isinstance(case.body, dict):
        return
    if case.media_type == "application/x-www-form-urlencoded":
        case.body = {name: value for name, value in case.body.items() if value not in (None, "") and not is_nested(value)}
    if case.body.get("client_secret") is None:
        if UUID.fullmatch(str(case.body.get("client_id"))):
            case.body = {**case.body, "client_id": os.environ["CLIENT_ID"]}
        pair = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}"
        case.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    elif case.body.get("client_id") is None:
        case.body = {**case.body, "client_id": os.environ["CLIENT_ID"]}


def is_nested(value):
    return isinstance(value, (list, dict))


@schemathesis.check
def what_is_valid_is_taken(context, response, case):
    """The own positive_data_acceptance, which goes by statuses alone."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code in (200, 201, 202, 204, 401, 403, 404, 409, 429):
        return
    name = case.operation.definition.raw["operationId"]
    if response.status_code == MET.get(name):
        return
    # The protocol has a schema of its own messages, which the document names.
    if name.startswith("sendMcpMessage") and response.status_code == 400:
        return
    issues = response.json().get("errors", [])
    unsaid = [issue for issue in issues if not any(said in issue["message"] for said in SAID)]
    assert response.status_code == 400 and issues and not unsaid, f"{response.status_code}: {response.text}"
