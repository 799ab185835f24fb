"""Reads infra/template.yaml: its functions, and what each may do."""

import yaml

from .common import TEMPLATE


class _Loader(yaml.SafeLoader):
    """Short forms (!Ref, !GetAtt, !Sub ...) as their long forms."""


def _intrinsic(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


def load():
    """The template as plain data."""
    return yaml.load(TEMPLATE.read_text(), _Loader)


def functions(template):
    """{logical id: package name} of the functions; the package is named in CodeUri."""
    return {
        logical: resource["Properties"]["CodeUri"].split("/")[-2]
        for logical, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


def _words(resource):
    """A Resource entry as one readable string."""
    if isinstance(resource, dict):
        (kind, value), = resource.items()
        return value if kind in ("Ref", "Fn::Sub") else ".".join(value)
    return str(resource)


def _statements(resources_of, role):
    """What the role's own policies say, and those that stand beside it because not every stack has them."""
    policies = list(resources_of[role]["Properties"]["Policies"])
    policies += [resource["Properties"] for resource in resources_of.values()
                 if resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]]
    for policy in policies:
        # What only a parameter switches on, and is off here: traces.
        if "Fn::If" in policy:
            continue
        for statement in policy["PolicyDocument"]["Statement"]:
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            for action in statement["Action"]:
                yield action, [_words(resource) for resource in resources]


def actions(template):
    """{package: {action: [resources]}} that the template allows; the scheduler's role is listed as `scheduler`."""
    resources = template["Resources"]
    roles = {package: resources[logical]["Properties"]["Role"]["Fn::GetAtt"][0]
             for logical, package in functions(template).items()}
    result = {}
    for package, role in {**roles, "scheduler": "SchedulerRole"}.items():
        allowed = result.setdefault(package, {})
        for action, where in _statements(resources, role):
            allowed.setdefault(action, []).extend(where)
        result[package] = {action: sorted(allowed[action]) for action in sorted(allowed)}
    return result
