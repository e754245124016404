// From OpenCL's error codes to the statuses and texts of rosin/backend.h.
#include <string_view>

#include "opencl.hpp"

namespace rosin::opencl {
namespace {

struct ErrorCode {
  cl_int code;
  std::string_view name;
  rosin_status status;
};

constexpr ErrorCode error_codes[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND", ROSIN_UNSUPPORTED},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE", ROSIN_DEVICE_FAULT},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE", ROSIN_UNSUPPORTED},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", ROSIN_OUT_OF_MEMORY},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES", ROSIN_DEVICE_FAULT},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY", ROSIN_OUT_OF_MEMORY},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE", ROSIN_COMPILE_FAILED},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", ROSIN_DEVICE_FAULT},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE", ROSIN_INVALID},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY", ROSIN_INVALID},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME", ROSIN_INVALID},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE", ROSIN_INVALID},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE", ROSIN_OUT_OF_MEMORY},
    {CL_PLATFORM_NOT_FOUND_KHR, "CL_PLATFORM_NOT_FOUND_KHR", ROSIN_UNSUPPORTED},
};

}  // namespace

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  // Codes of vendors stand far below; what is left says that a call was wrong.
  ErrorCode found{code, "", code < -1000 ? ROSIN_DEVICE_FAULT : ROSIN_INVALID};
  for (const ErrorCode& entry : error_codes)
    if (entry.code == code) found = entry;
  std::string text = std::string(what) + " failed: error " + std::to_string(code);
  if (!found.name.empty()) text.append(", ").append(found.name);
  throw Failure{found.status, std::move(text)};
}

}  // namespace rosin::opencl
