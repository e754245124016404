// The null back end counts what it is asked for. Loaded from beside the test program, as rosin would.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <rosin/backend.h>

namespace rosin {
namespace {

void* null_plugin() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return dlopen((folder / "rosin" / "librosin_null.so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

TEST(NullBackend, CountsCallsAndGivesZeros) {
  void* plugin = null_plugin();
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto open = reinterpret_cast<rosin_backend_open_function>(dlsym(plugin, "rosin_backend_open"));
  const auto counts = reinterpret_cast<uint64_t (*)(const char*)>(dlsym(plugin, "rosin_null_counts"));
  const rosin_backend& api = *open(ROSIN_BACKEND_ABI);
  const uint64_t before = counts("launch"), copies = counts("copy_out");
  const uint64_t added = counts("graph_add"), updated = counts("graph_update"), launched = counts("graph_launch");
  rosin_device* device = nullptr;
  rosin_stream* stream = nullptr;
  rosin_memory* memory = nullptr;
  ASSERT_EQ(api.open(0, &device), ROSIN_OK);
  ASSERT_EQ(api.stream_create(device, &stream), ROSIN_OK);
  ASSERT_EQ(api.alloc(device, 1000, &memory), ROSIN_OK);
  const rosin_program program{};
  void* bytes = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(api.compile(nullptr, "null", &program, &bytes, &count), ROSIN_OK);
  rosin_module* module = nullptr;
  ASSERT_EQ(api.load(device, bytes, count, &module), ROSIN_OK);
  api.free_bytes(bytes);
  rosin_kernel* kernel = nullptr;
  ASSERT_EQ(api.kernel(module, "any", &kernel), ROSIN_OK);
  const rosin_launch launch{};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(api.launch(stream, kernel, &launch), ROSIN_OK);
  int32_t out = 7;
  EXPECT_EQ(api.copy_out(stream, &out, {memory, 0}, 4), ROSIN_OK);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(counts("launch"), before + 3);
  EXPECT_EQ(counts("copy_out"), copies + 1);
  EXPECT_EQ(counts("no such function"), 0u);
  rosin_graph* graph = nullptr;
  rosin_graph_node node{};
  node.size = sizeof node;
  node.kernel = kernel;
  node.launch = &launch;
  ASSERT_EQ(api.graph_create(device, &graph), ROSIN_OK);
  EXPECT_EQ(api.graph_launch(stream, graph), ROSIN_INVALID);  // not finished: not counted
  for (int i = 0; i < 2; ++i) EXPECT_EQ(api.graph_add(graph, &node), ROSIN_OK);
  EXPECT_EQ(api.graph_finish(graph), ROSIN_OK);
  EXPECT_EQ(api.graph_update(graph, 1, &node), ROSIN_OK);
  EXPECT_EQ(api.graph_update(graph, 2, &node), ROSIN_INVALID);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(api.graph_launch(stream, graph), ROSIN_OK);
  EXPECT_EQ(counts("graph_add"), added + 2);
  EXPECT_EQ(counts("graph_update"), updated + 1);
  EXPECT_EQ(counts("graph_launch"), launched + 3);
  EXPECT_EQ(counts("launch"), before + 3);
  api.graph_destroy(graph);
  api.unload(module);
  api.release(device, memory);
  api.stream_destroy(stream);
  api.close(device);
}

}  // namespace
}  // namespace rosin
