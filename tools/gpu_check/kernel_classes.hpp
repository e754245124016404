// Classes of kernels by name, each compiled as the library compiles it in training: tools/sass reads their machine
// code. Where a vendor's libraries are not to be had, products and convolutions are kernels too.
// Read next: kernel_classes.cpp.
#pragma once

#include <rosin/device.hpp>

#include <string>
#include <vector>

namespace gpu_check {

std::vector<std::string> kernel_class_names();

/// Compiles and launches the kernels of the class, and few others. Error (std::invalid_argument): no such class.
void run_kernel_class(const rosin::Device& device, const std::string& name);

}  // namespace gpu_check
