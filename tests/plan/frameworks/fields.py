"""What a run says in several fields."""


def values(workload, *fields):
    return [workload.value(field) for field in fields]
