// Graphs: nodes that are given to a stream one after the other, in an order that their dependencies allow and that is
// as far from the order in which they were added as that: a dependency that is missing shows. Read first: stream.hpp.
#pragma once

#include <memory>
#include <vector>

#include "stream.hpp"

struct rosin_graph {
  explicit rosin_graph(rosin_device& of) : device(of) {}

  // Each throws Failure where the arguments break backend.h.
  void add(const rosin_graph_node& node);
  void finish();
  void update(uint32_t number, const rosin_graph_node& node);
  void launch(rosin_stream& stream) const;

  rosin_device& device;

 private:
  struct Node {
    rosin_graph_node is;  // its kind, kernel and call
    std::vector<uint32_t> dependencies;
    std::shared_ptr<const rosin::reference::Work> work;  // shared with launches under way
  };
  std::shared_ptr<const rosin::reference::Work> work_of(const rosin_graph_node& node) const;

  std::vector<Node> nodes_;
  std::vector<size_t> order_;
  bool finished_ = false;
};
