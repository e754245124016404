// Collectives over NCCL, or over RCCL where the devices are AMD's. Each begins with a comparison of what the ranks
// call, over the carrier, unless they know that already: a rank that does not come or calls something else is seen
// before NCCL, which would wait for ever. The communicator is made at the first collective, when the device is known,
// by a thread that is left behind where a rank is lost meanwhile.
// Read first: library.hpp, carrier.hpp.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "common/describe.hpp"
#include "common/ranks.hpp"
#include "common/trouble.hpp"
#include "nccl/carrier.hpp"
#include "nccl/library.hpp"

namespace rosin::transport::nccl {

class World final : public Ranks {
 public:
  explicit World(double timeout);

  rosin_comm_place place() const override { return carrier_.place(); }
  std::string version() const override;
  rosin_comm_devices way_of_devices() const override { return ROSIN_COMM_WITH_STREAM; }
  void require_devices(std::string_view backend) const override;
  void run(const rosin_comm_collective& collective) override;
  void abort(const char* why) noexcept override;
  void check() override;
  void leave() noexcept override;

 private:
  class Current;

  void run_on_device(const rosin_comm_collective& c);
  bool compare(const rosin_comm_collective& c, bool needs_communicator);
  void make_communicator(double timeout);
  Comm joined_communicator(const UniqueId& id, double timeout);
  [[noreturn]] void give_up(const std::string& text);
  void give(const rosin_comm_collective& c);
  int give_part(const rosin_comm_collective& c, const rosin_comm_part& part, Comm comm);
  void good(int result, const char* what);
  [[noreturn]] void break_with(const Trouble& trouble);
  void throw_if_broken();
  void drop_communicator(int (*how)(Comm)) noexcept;

  mutable Library library_;  // of the vendor whose devices were named last
  Carrier carrier_;
  uint64_t number_ = 0;        // of the last collective on a device
  std::atomic<Comm> comm_{};   // null: none yet, or aborted
  Context context_ = nullptr;  // for which it was made
  std::mutex breaking_;
  std::optional<Trouble> broken_;
};

}  // namespace rosin::transport::nccl
