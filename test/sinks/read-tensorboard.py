"""Reads the event files of FOLDER/run as TensorBoard does, and prints what it found as JSON."""
import json
import sys

from tensorboard import context
from tensorboard.backend.event_processing import (
    data_provider,
    event_accumulator,
    plugin_event_multiplexer,
    tag_types,
)
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.util import tensor_util

folder = sys.argv[1]
found = {"scalars": {}, "page": {}, "histograms": {}, "texts": {}}

# As a script reads it.
accumulator = event_accumulator.EventAccumulator(f"{folder}/run", size_guidance={tag_types.SCALARS: 0})
accumulator.Reload()
for tag in accumulator.Tags()["scalars"]:
    found["scalars"][tag] = [[e.step, e.value] for e in accumulator.Scalars(tag)]

# As the page reads it: what was a plain value is one of the scalars plugin there.
multiplexer = plugin_event_multiplexer.EventMultiplexer(
    tensor_size_guidance={"scalars": 0, "histograms": 0, "text": 0}
).AddRunsFromDirectory(folder)
multiplexer.Reload()
(run,) = multiplexer.Runs()
for tag in multiplexer.Runs()[run]["tensors"]:
    plugin = multiplexer.SummaryMetadata(run, tag).plugin_data.plugin_name
    points = [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in multiplexer.Tensors(run, tag)]
    if plugin == "scalars":
        found["page"][tag] = [[step, float(value)] for step, value in points]
    elif plugin == "histograms":
        found["histograms"][tag] = [[step, value.tolist()] for step, value in points]
    elif plugin == "text":
        found["texts"][tag] = [[step, value.item().decode()] for step, value in points]

# As its page of hyper-parameters reads it, which wants a folder of runs.
provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
page = backend_context.Context(
    base_plugin.TBContext(logdir=folder, multiplexer=multiplexer, data_provider=provider)
)
request = context.RequestContext()
asked = api_pb2.ListSessionGroupsRequest(
    start_index=0,
    slice_size=10,
    allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING],
)
(group,) = list_session_groups.Handler(request, page, "", asked).run().session_groups
found["hparams"] = {name: getattr(value, value.WhichOneof("kind")) for name, value in group.hparams.items()}
found["metrics"] = {metric.name.tag: metric.value for metric in group.metric_values}
found["status"] = api_pb2.Status.Name(group.sessions[0].status)
print(json.dumps(found))
