"""Reads a folder of event files as TensorBoard does, and prints what it found as JSON."""
import json
import sys

from tensorboard.backend.event_processing import event_accumulator, tag_types
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.util import tensor_util

accumulator = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={tag_types.TENSORS: 0})
accumulator.Reload()
found = {"scalars": {}, "histograms": {}, "texts": {}, "hparams": {}, "status": None}
for tag in accumulator.Tags()["tensors"]:
    summary = accumulator.SummaryMetadata(tag)
    plugin = summary.plugin_data.plugin_name
    points = [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
    if plugin == "scalars":
        found["scalars"][tag] = [[step, float(value)] for step, value in points]
    elif plugin == "histograms":
        found["histograms"][tag] = [[step, value.tolist()] for step, value in points]
    elif plugin == "text":
        found["texts"][tag] = [[step, value.item().decode()] for step, value in points]
    elif tag == hparams_metadata.SESSION_START_INFO_TAG:
        start = hparams_metadata.parse_session_start_info_plugin_data(summary.plugin_data.content)
        found["hparams"] = {
            name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()
        }
    elif tag == hparams_metadata.SESSION_END_INFO_TAG:
        end = hparams_metadata.parse_session_end_info_plugin_data(summary.plugin_data.content)
        found["status"] = type(end).DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number[end.status].name
print(json.dumps(found))
