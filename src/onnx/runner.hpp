// Runner: one call of a program. It keeps the value of every slot, and lets go of each after its last use, so that
// nothing is computed or stored for its sake. Read first: program.hpp.
#pragma once

#include <span>
#include <vector>

#include <rosin/array.hpp>

#include "onnx/program.hpp"

namespace rosin::onnx {

class Runner {
 public:
  /// `weights` are the arrays of the program's places.
  Runner(const Program& program, std::span<const Array> weights)
      : program_(program), weights_(weights), values_(static_cast<size_t>(program.slots)) {}

  std::vector<Array> run(const Block& block, std::span<const Array> inputs);
  /// One step; its errors begin with the node.
  void run(const Step& step);
  /// Error (io): nothing has made it.
  Array value(int slot) const;

 private:
  /// What a step reads, on one device.
  std::vector<Array> gather(const Step& step) const;
  std::vector<Array> convert(const Step& step);

  const Program& program_;
  std::span<const Array> weights_;
  std::vector<Array> values_;  // by slot
  int depth_ = 0;
};

}  // namespace rosin::onnx
