// Ranks that meet at an address: all are connected to rank 0, which compares what they call, combines what they give
// and sends each what it gets. Made for few and small arrays of the host: what it carries goes through one process.
// Read first: connection.hpp.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/trouble.hpp"
#include "tcp/connection.hpp"

namespace rosin::transport::tcp {

class Star final : public Ranks {
 public:
  /// Meets at ROSIN_MASTER as ROSIN_RANK of ROSIN_WORLD_SIZE; without that it is alone. Throws Trouble.
  explicit Star(double timeout);

  rosin_comm_place place() const override { return place_; }
  void run(const rosin_comm_collective& collective) override;
  void abort(const char* why) noexcept override;
  void check() override;
  void leave() noexcept override;

 private:
  using Bytes = std::vector<char>;

  void gather_ranks(const std::string& port, double timeout);
  void join_master(const std::string& host, const std::string& port, double timeout);
  void run_as_master(const rosin_comm_collective& c);
  void run_as_other(const rosin_comm_collective& c);
  Head hear(int rank, Bytes& bytes, double timeout);
  void tell(int rank, const Head& head, const Bytes& bytes, double timeout);
  void tell_failure(const Trouble& trouble) noexcept;
  void tell_all(const Head& head, const std::string& text) noexcept;
  void look_at(int rank);
  [[noreturn]] void explain(Fault fault, int rank, double timeout) const;
  bool is_alone() const { return place_.ranks == 1; }

  rosin_comm_place place_{sizeof(rosin_comm_place), 0, 1, 0, 1};
  std::vector<std::unique_ptr<Connection>> others_;  // of rank 0: by rank; of others: rank 0's alone
  uint64_t number_ = 0;                              // of the last collective
  Description current_{}, last_{};
  std::atomic<bool> aborted_{false};
  std::string why_;  // it was aborted here, set before
  std::optional<Trouble> broken_;
};

}  // namespace rosin::transport::tcp
