// See device_table.hpp.
#include "run/device_table.hpp"

#include <limits>
#include <utility>

#include "graph/device_facts.hpp"
#include "run/buffer_pool.hpp"
#include "run/memory_text.hpp"

namespace rosin {
namespace {

constexpr size_t most_devices = std::numeric_limits<uint8_t>::max();  // positions stand in a byte of each node

}  // namespace

DeviceTable& DeviceTable::instance() {
  static auto* table = new DeviceTable;  // never destroyed: arrays at namespace scope outlive it otherwise
  return *table;
}

int DeviceTable::add(Entry entry) {
  std::lock_guard guard(lock_);
  if (rows_.size() == most_devices) return -1;
  auto row = std::make_unique<Row>();
  row->entry = std::move(entry);
  rows_.push_back(std::move(row));
  const int position = static_cast<int>(rows_.size());
  const Entry& added = rows_.back()->entry;
  note_device(position, {added.backend + ":" + std::to_string(added.id), added.info.float64 != 0});
  return position;
}

DeviceTable::Row& DeviceTable::row(int position) {
  std::lock_guard guard(lock_);
  return *rows_[static_cast<size_t>(position) - 1];
}

std::string_view DeviceTable::backend_of(int position) { return row(position).entry.backend; }
int DeviceTable::id_of(int position) { return row(position).entry.id; }
const rosin_device_info& DeviceTable::info_of(int position) { return row(position).entry.info; }

OpenDevice& DeviceTable::open(int position) {
  Row& found = row(position);
  std::string name = device_text(position);
  std::lock_guard guard(lock_);
  if (!found.open) {
    auto opened = std::make_unique<OpenDevice>(*found.entry.functions, found.entry.id, std::move(name), position);
    found.executor = std::make_unique<PluginExecutor>(*opened);
    found.open = std::move(opened);
  }
  return *found.open;
}

plan::DeviceExecutor& DeviceTable::executor(int position) {
  if (position == 0) return *cpu_;
  open(position);
  return *row(position).executor;
}

Memory* allocate_memory(const MemoryRequest& request) {
  if (request.what) throw_no_memory(request.what, static_cast<int64_t>(request.bytes));
  if (request.device == 0) return allocate_buffer(request.bytes);
  return DeviceTable::instance().executor(request.device).allocate(request.bytes);
}

}  // namespace rosin
