"""The pretended Metal is as strict as the real one at best: whoever breaks its rules ends with a text.

Each rule is broken by a process of its own, from Python, through objc_msgSend. The build is the folder named by
ROSIN_TEST_BUILD, else build/release.
"""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
LIBRARY = BUILD / "fake_metal" / "Metal"

BEFORE = """
import ctypes
from ctypes import c_bool, c_double, c_uint8, c_uint64 as u64, c_void_p as id
metal = ctypes.CDLL(LIBRARY)
def function(name, answer, *arguments):
    made = getattr(metal, name)
    made.restype, made.argtypes = answer, arguments
    return made
get_class = function("objc_getClass", id, ctypes.c_char_p)
selector = function("sel_registerName", id, ctypes.c_char_p)
push, pop = function("objc_autoreleasePoolPush", id), function("objc_autoreleasePoolPop", None, id)
retain, release = function("objc_retain", id, id), function("objc_release", None, id)
def send(to, name, *arguments, answer=id):
    address = ctypes.cast(metal.objc_msgSend, id).value
    method = ctypes.CFUNCTYPE(answer, id, id, *(kind for kind, _ in arguments))(address)
    return method(to, selector(name.encode()), *(value for _, value in arguments))
class Size(ctypes.Structure):
    _fields_ = [("width", u64), ("height", u64), ("depth", u64)]
class Range(ctypes.Structure):
    _fields_ = [("location", u64), ("length", u64)]
pool = push()
devices = function("MTLCopyAllDevices", id)()
device = send(devices, "objectAtIndex:", (u64, 0))
queue = send(device, "newCommandQueue")
buffer = send(device, "newBufferWithLength:options:", (u64, 64), (u64, 0))
other = send(device, "newBufferWithLength:options:", (u64, 64), (u64, 0))
commands = send(queue, "commandBuffer")
def bytes_of(of):
    return ctypes.string_at(send(of, "contents"), 64)
def fill(blit, first, count, value, of=buffer):
    send(blit, "fillBuffer:range:value:", (id, of), (Range, Range(first, count)), (c_uint8, value), answer=None)
def copy(blit, source, to, first, count):
    send(blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", (id, source), (u64, first), (id, to),
         (u64, first), (u64, count), answer=None)
def end(encoder):
    send(encoder, "endEncoding", answer=None)
def commit(of):
    send(of, "commit", answer=None)
def status(of):
    return send(of, "status", answer=u64)
def wait(of):
    send(of, "waitUntilCompleted", answer=None)
"""


@unittest.skipUnless(LIBRARY.is_file(), "the build has no pretended Metal")
class FakeMetal(unittest.TestCase):
    def run_text(self, text, options=""):
        script = BEFORE.replace("LIBRARY", repr(str(LIBRARY))) + textwrap.dedent(text)
        environment = {name: value for name, value in os.environ.items() if name != "FAKE_METAL"}
        return subprocess.run([sys.executable, "-c", script], env=environment | {"FAKE_METAL": options},
                              capture_output=True, text=True, check=False, timeout=60)

    def works(self, text, options=""):
        done = self.run_text(text, options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def is_refused(self, text, why, options=""):
        done = self.run_text(text, options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"fake_metal: {why}", done.stderr)

    def test_blits_run_late_and_in_order(self):
        self.works("""
            blit = send(commands, "blitCommandEncoder")
            fill(blit, 0, 64, 7)
            fill(blit, 8, 16, 9)
            copy(blit, buffer, other, 4, 32)
            end(blit)
            commit(commands)
            assert bytes_of(buffer) == b"\\xcd" * 64, "it did not wait"
            wait(commands)
            assert status(commands) == 4
            assert bytes_of(buffer) == b"\\7" * 8 + b"\\t" * 16 + b"\\7" * 40
            assert bytes_of(other) == b"\\xcd" * 4 + b"\\7" * 4 + b"\\t" * 16 + b"\\7" * 12 + b"\\xcd" * 28
            """)

    def test_work_waits_for_events_of_other_queues(self):
        for order in range(4):
            self.works("""
                event = send(device, "newSharedEvent")
                def late(of, value, *events):
                    made = send(of, "commandBuffer")
                    for name, number in events[:1]:
                        send(made, name, (id, event), (u64, number), answer=None)
                    blit = send(made, "blitCommandEncoder")
                    fill(blit, 0, 64, value)
                    end(blit)
                    for name, number in events[1:]:
                        send(made, name, (id, event), (u64, number), answer=None)
                    commit(made)
                    return made
                second = late(send(device, "newCommandQueue"), 2, ("encodeWaitForEvent:value:", 1))
                late(queue, 1, ("encodeWaitForEvent:value:", 0), ("encodeSignalEvent:value:", 1))
                wait(second)
                assert bytes_of(buffer) == b"\\2" * 64
                """, f"order={order}")

    def test_nil_answers_nothing(self):
        self.works("""
            assert not send(None, "commandBuffer") and send(None, "GPUEndTime", answer=c_double) == 0
            assert send(None, "status", answer=u64) == 0
            """)

    def test_what_fails_as_asked_answers_nil(self):
        self.works("""
            assert send(device, "newBufferWithLength:options:", (u64, 64), (u64, 0))
            assert not send(device, "newBufferWithLength:options:", (u64, 64), (u64, 0))
            """, "fail=newBufferWithLength:options::4")

    def test_a_command_buffer_that_fails_has_an_error_and_sends_nothing(self):
        self.works("""
            event = send(device, "newSharedEvent")
            send(commands, "encodeSignalEvent:value:", (id, event), (u64, 5), answer=None)
            commit(commands)
            wait(commands)
            assert status(commands) == 5
            text = send(send(send(commands, "error"), "localizedDescription"), "UTF8String", answer=ctypes.c_char_p)
            assert text.startswith(b"Internal Error"), text
            assert send(event, "signaledValue", answer=u64) == 0
            """, "fail=commit:1")

    def test_the_life_of_objects_is_kept(self):
        self.is_refused("release(buffer); release(buffer)",
                        "an object of MTLBuffer is released more often than retained")
        self.is_refused("release(buffer); send(buffer, 'contents')",
                        "-[MTLBuffer contents] to an object that has been released by all")
        self.is_refused("retain(commands); pop(pool); release(commands); status(commands)",
                        "-[MTLCommandBuffer status] to an object that has been released by all")
        self.is_refused("pop(pool); send(queue, 'commandBuffer')",
                        "an object of MTLCommandBuffer is autoreleased without a pool")
        self.is_refused("push(); pop(pool)", "pools are popped in another order than pushed")

    def test_objects_that_live_at_the_end_are_named_where_that_is_asked(self):
        self.is_refused("pop(pool); release(devices); release(queue); release(buffer)",
                        "objects that nobody released:\nMTLBuffer 1\n", "leaks=1")
        self.works("pop(pool); release(devices); release(queue); release(buffer); release(other)", "leaks=1")

    def test_messages_and_objects_fit(self):
        self.is_refused("send(buffer, 'commit')", "-[MTLBuffer commit]: unrecognized selector")
        self.is_refused("fill(send(commands, 'blitCommandEncoder'), 0, 64, 1, queue)",
                        "an object of another class than is needed")

    def test_encoders_end_once_and_one_by_one(self):
        start = "blit = send(commands, 'blitCommandEncoder')\n"
        self.is_refused(start + "end(blit); fill(blit, 0, 64, 1)", "fillBuffer:range:value:: after endEncoding")
        self.is_refused(start + "end(blit); end(blit)", "endEncoding: after endEncoding")
        self.is_refused(start + "commit(commands)", "commit: an encoder has not ended")
        self.is_refused(start + "send(commands, 'computeCommandEncoder')",
                        "MTLComputeCommandEncoder: an encoder has not ended")
        self.is_refused(start + "pop(pool)", "an encoder is released without endEncoding")

    def test_command_buffers_are_committed_once(self):
        self.is_refused("commit(commands); commit(commands)", "commit: the command buffer was committed")
        self.is_refused("commit(commands); send(commands, 'blitCommandEncoder')",
                        "MTLBlitCommandEncoder: the command buffer was committed")
        self.is_refused("wait(commands)", "waitUntilCompleted: the command buffer was not committed")

    def test_blits_keep_bounds_and_words(self):
        start = "blit = send(commands, 'blitCommandEncoder')\n"
        self.is_refused(start + "fill(blit, 4, 64, 1)", "fillBuffer:range:value:: beyond the buffer")
        self.is_refused(start + "fill(blit, 0, 0, 1)", "fillBuffer:range:value:: beyond the buffer")
        self.is_refused(start + "fill(blit, 0, 6, 1)", "fillBuffer:range:value:: no multiple of 4 bytes")
        self.is_refused(start + "copy(blit, buffer, buffer, 0, 8)",
                        "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:: the ranges overlap")

    def test_kernels_have_a_pipeline_and_arguments(self):
        start = """
            text = b'''#include <metal_stdlib>
            using namespace metal;
            struct k_arguments {
              device uint* p0;
            };
            [[max_total_threads_per_threadgroup(8)]] kernel void k(constant k_arguments& list [[buffer(0)]], \\
            uint3 group_place [[threadgroup_position_in_grid]], uint item_place [[thread_index_in_threadgroup]]) {
              device uint* const p0 = list.p0;
              p0[item_place] = item_place;
            }
            '''
            def string(of):
                return send(get_class(b"NSString"), "stringWithUTF8String:", (ctypes.c_char_p, of))
            options = send(get_class(b"MTLCompileOptions"), "new")
            send(options, "setLanguageVersion:", (u64, 3 << 16), answer=None)
            send(options, "setFastMathEnabled:", (c_bool, False), answer=None)
            library = send(device, "newLibraryWithSource:options:error:", (id, string(text)), (id, options), (id, None))
            kernel = send(library, "newFunctionWithName:", (id, string(b"k")))
            pipeline = send(device, "newComputePipelineStateWithFunction:error:", (id, kernel), (id, None))
            encoder = send(commands, "computeCommandEncoder")
            def use(pipeline):
                send(encoder, "setComputePipelineState:", (id, pipeline), answer=None)
            def arguments():
                all = ctypes.byref(u64(send(buffer, "gpuAddress", answer=u64)))
                send(encoder, "setBytes:length:atIndex:", (id, ctypes.cast(all, id)), (u64, 8), (u64, 0), answer=None)
            def name(usage):
                send(encoder, "useResource:usage:", (id, buffer), (u64, usage), answer=None)
            def launch(items):
                send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", (Size, Size(1, 1, 1)),
                     (Size, Size(items, 1, 1)), answer=None)
            def done():
                end(encoder); commit(commands); wait(commands)
                error = send(send(commands, "error"), "localizedDescription")
                return (send(error, "UTF8String", answer=ctypes.c_char_p) or b"").decode()
            """
        right = "use(pipeline); arguments(); name(3); launch(8); assert not done()\n"
        self.works(start + right + "            assert bytes_of(buffer)[:8] == b'\\0\\0\\0\\0\\1\\0\\0\\0'\n")
        self.is_refused(start + "launch(8)\n",
                        "dispatchThreadgroups:threadsPerThreadgroup: without a pipeline")
        self.is_refused(start + "use(pipeline); launch(8)\n", "k: missing Buffer binding at index 0")
        self.is_refused(start + "use(pipeline); arguments(); name(3); launch(9)\n", "k: 9 threads")
        self.works(start + "use(pipeline); arguments(); launch(8)\n" +
                   "            assert 'PageFault): k: an access beyond a block of memory' in done()\n")
        self.works(start + "use(pipeline); arguments(); name(1); launch(8)\n" +
                   "            assert 'k: a write of memory that the launch has for reading alone' in done()\n")
        self.is_refused(start + "use(pipeline); arguments(); name(3); launch(8); end(encoder)\n" +
                        "            commit(commands); release(buffer)\n",
                        "a buffer ends: memory is freed while work that waits in a stream uses it")

    def test_attention_of_graphs_takes_what_fits(self):
        start = """
            graph = send(get_class(b"MPSGraph"), "new")
            def shape(*sizes):
                numbers = [send(get_class(b"NSNumber"), "numberWithLongLong:", (ctypes.c_int64, one)) for one in sizes]
                return send(get_class(b"NSArray"), "arrayWithObjects:count:",
                            (id, ctypes.cast((id * len(numbers))(*numbers), id)), (u64, len(numbers)))
            def tensor(*sizes, type=0x10000020):
                return send(graph, "placeholderWithShape:dataType:name:", (id, shape(*sizes)), (ctypes.c_uint32, type),
                            (id, None))
            def attend(q, k, v, *mask, scale=0.5):
                name = "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:"
                return send(graph, name + ("maskTensor:" if mask else "") + "scale:name:",
                            *((id, one) for one in (q, k, v, *mask)), (ctypes.c_float, scale), (id, None))
            q, k = tensor(2, 3, 5, 4), tensor(2, 3, 7, 4)
            """
        self.works(start + """
            assert attend(q, k, k) and attend(q, k, k, tensor(5, 7)) and attend(q, k, k, tensor(2, 1, 1, 7))
            assert attend(q, k, k, None)
            """, "system=15")
        for broken, why in (
                ("attend(tensor(3, 5, 4), tensor(3, 7, 4), tensor(3, 7, 4))", "attention without four dims"),
                ("attend(q, tensor(2, 3, 7, 4, type=0x10000010), k)", "attention of different types"),
                ("attend(*[tensor(1, 1, 2, 2, type=0x20000020)] * 3)", "attention of no floats"),
                ("attend(q, k, tensor(2, 3, 7, 6))", "keys and values of different sizes"),
                ("attend(q, *[tensor(2, 1, 7, 4)] * 2)", "queries and keys that do not fit"),
                ("attend(q, *[tensor(2, 3, 7, 5)] * 2)", "queries and keys that do not fit"),
                ("attend(q, k, k, tensor(7, 5))", "a mask that does not broadcast to the scores"),
                ("attend(q, k, k, tensor(4, 3, 5, 7))", "a mask that does not broadcast to the scores"),
                ("attend(q, k, k, tensor(1, 2, 3, 5, 7))", "a mask that does not broadcast to the scores"),
                ("attend(q, k, k, tensor(5, 7, type=0x10000010))", "attention of different types"),
                ("attend(q, k, k, scale=float('inf'))", "a scale that is no number"),
                ("send(graph, 'bandPartWithTensor:numLower:numUpper:name:', (id, tensor(4)), (ctypes.c_int64, -1), "
                 "(ctypes.c_int64, 0), (id, None))", "a band of no matrix")):
            self.is_refused(start + f"{broken}\n", f"MPSGraph: {why}", "system=15")
        self.is_refused(start + "attend(q, k, k)\n", "-[MPSGraph scaledDotProductAttentionWithQueryTensor:"
                        "keyTensor:valueTensor:scale:name:]: unrecognized selector", "system=14")


if __name__ == "__main__":
    unittest.main()
