"""A service behind an alias. Each release is a version of this function."""

RELEASE = "1.0.0"
GREETINGS = {"en": "hello", "de": "hallo"}


def handler(event, context):
    """Answers a request of the function's URL."""
    return {"statusCode": 200, "body": f"{GREETINGS['en']} from greeter {RELEASE}"}
