// What of Metal and Foundation is used: messages, structs and numbers, by Apple's documentation of Metal
// (developer.apple.com/documentation/metal, macOS 13). NSUInteger is uint64_t, BOOL one byte.
// Read first: objc.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metal/objc.hpp"

namespace rosin::metal {

// ---- Structs and numbers

/// MTLSize
struct Size {
  uint64_t width, height, depth;
};
/// NSRange
struct Range {
  uint64_t location, length;
};

/// MTLResourceOptions
constexpr uint64_t storage_shared = 0, storage_private = 2 << 4;
/// MTLResourceUsage
constexpr uint64_t usage_read = 1, usage_write = 2;
/// MTLGPUFamily
constexpr int64_t family_apple_1 = 1001, family_apple_newest = 1010, family_metal_3 = 5001;
/// MTLCommandBufferStatus
constexpr uint64_t status_completed = 4, status_error = 5;
/// MTLLanguageVersion
constexpr uint64_t language_3_0 = 3 << 16;
/// MTLMathMode, MTLMathFloatingPointFunctions
constexpr int64_t math_safe = 0, math_precise = 1;

/// Of Mac2 and Apple4 and later, by the tables of features: items of a group, bytes of setBytes.
constexpr int32_t largest_group = 1024;
constexpr size_t largest_inline = 4096;

// ---- Messages

namespace send {

// NSObject, NSString, NSArray, NSError, NSProcessInfo
inline const Message<Id()> make("new");
inline const Message<bool(Selector)> responds("respondsToSelector:");
inline const Message<Id(const char*)> string_with_utf8("stringWithUTF8String:");
inline const Message<const char*()> utf8("UTF8String");
inline const Message<uint64_t()> count("count");
inline const Message<Id(uint64_t)> object_at("objectAtIndex:");
inline const Message<Id()> localized_description("localizedDescription");
inline const Message<Id()> process_info("processInfo"), system_version("operatingSystemVersionString");

// MTLDevice
inline const Message<Id()> name("name");
inline const Message<bool(int64_t)> supports_family("supportsFamily:");
inline const Message<bool()> has_unified_memory("hasUnifiedMemory");
inline const Message<uint64_t()> max_threadgroup_memory("maxThreadgroupMemoryLength"),
    max_buffer_length("maxBufferLength"), working_set_size("recommendedMaxWorkingSetSize"),
    allocated_size("currentAllocatedSize");
inline const Message<Id()> new_queue("newCommandQueue"), new_shared_event("newSharedEvent");
inline const Message<Id(uint64_t, uint64_t)> new_buffer("newBufferWithLength:options:");
inline const Message<Id(Id, Id, Id*)> new_library("newLibraryWithSource:options:error:");
inline const Message<Id(Id, Id*)> new_pipeline("newComputePipelineStateWithFunction:error:");

// MTLCompileOptions, MTLLibrary, MTLComputePipelineState
inline const Message<void(bool)> set_fast_math("setFastMathEnabled:");
inline const Message<void(int64_t)> set_math_mode("setMathMode:"), set_math_functions("setMathFloatingPointFunctions:");
inline const Message<void(uint64_t)> set_language("setLanguageVersion:");
inline const Message<Id(Id)> new_function("newFunctionWithName:");
inline const Message<uint64_t()> max_threads("maxTotalThreadsPerThreadgroup");

// MTLBuffer, MTLSharedEvent
inline const Message<void*()> contents("contents");
inline const Message<uint64_t()> gpu_address("gpuAddress");
inline const Message<void(uint64_t)> set_signaled_value("setSignaledValue:");
inline const Message<bool(uint64_t, uint64_t)> wait_until_signaled("waitUntilSignaledValue:timeoutMS:");

// MTLCommandQueue, MTLCommandBuffer
inline const Message<Id()> command_buffer("commandBuffer"), compute_encoder("computeCommandEncoder"),
    blit_encoder("blitCommandEncoder"), error("error");
inline const Message<void()> commit("commit"), wait_until_completed("waitUntilCompleted");
inline const Message<uint64_t()> status("status");
inline const Message<double()> gpu_end_time("GPUEndTime");
inline const Message<void(Id, uint64_t)> encode_signal("encodeSignalEvent:value:"),
    encode_wait("encodeWaitForEvent:value:");

// MTLCommandEncoder, MTLComputeCommandEncoder, MTLBlitCommandEncoder
inline const Message<void()> end_encoding("endEncoding");
inline const Message<void(Id)> set_pipeline("setComputePipelineState:");
inline const Message<void(const void*, uint64_t, uint64_t)> set_bytes("setBytes:length:atIndex:");
inline const Message<void(Id, uint64_t)> use_resource("useResource:usage:");
inline const Message<void(Size, Size)> dispatch("dispatchThreadgroups:threadsPerThreadgroup:");
inline const Message<void(Id, uint64_t, Id, uint64_t, uint64_t)> copy(
    "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:");
inline const Message<void(Id, Range, uint8_t)> fill("fillBuffer:range:value:");

}  // namespace send
}  // namespace rosin::metal
