"""Files that are missing in a checkpoint: where a run is resumed from it, it was not written to its
end, or what wrote it kept no state of a training.
"""

from __future__ import annotations

from typing import Sequence

from ..model.finding import hint
from ..model.pattern import pattern
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, groups_of

__all__ = ["tell_unfinished_checkpoints"]

#: A folder that a trainer names after the step (transformers, DeepSpeed, Megatron, Lightning), with
#: the file, or folder of one tag, that was looked for in it.
_IN_CHECKPOINT = pattern(
    r"^(?P<folder>(?:.*/)?(?:checkpoint|ckpt|step|global_step|epoch|iter)[-_]?\d{1,9})/"
    r"(?P<file>[^/]{1,120}(?:/[^/]{1,120})?)$"
)
#: What holds the state of a training, beside the weights.
_STATE = pattern(
    r"^(?:trainer_state\.json|optimizer\.\w+|scheduler\.\w+|rng_state\w*\.pth|scaler\.pt|latest"
    r"|training_args\.bin|\w*optim_states\.pt|mp_rank_\w+|zero_pp_rank_\w+|.*\.distcp|\.metadata)"
)
#: What goes on with a run that wrote it.
_RESUMES = pattern(r"(?i)resum|load_(?:checkpoint|state)|restore")


def tell_unfinished_checkpoints(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of a file that a checkpoint lacks that the checkpoint is not whole."""
    for draft in drafts:
        raised = draft.exception(run.exception)
        if not draft.is_made_by("file-missing") or raised is None:
            continue
        path = groups_of(draft.events[0], run.modules).get("path", "")
        match = _IN_CHECKPOINT.match(path)
        if match is None:
            continue
        is_state = _STATE.match(match.group("file").rpartition("/")[2])
        if not is_state and not any(_RESUMES.search(frame.code) for frame in raised.frames):
            continue
        folder = match.group("folder")
        came = draft.finding.message.partition(". ")[2]
        what = f"The checkpoint {folder} is not whole: {match.group('file')} is not there."
        look = (
            f"Look at what {folder} holds (ls -l) beside an older one: where its save broke off (a "
            "full disk, a job that was ended), resume from the last whole one; where only weights "
            "were kept (save_only_model, a merged model), start from them anew"
        )
        draft.finding = draft.finding._replace(
            message=f"{what} {came}".strip(), remedies=(hint(look),)
        )
        draft.meaning = (
            "Only a checkpoint with the state of the training can be resumed from; one that was "
            "being written when its run ended lacks what comes last."
        )
