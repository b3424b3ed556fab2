/* NVIDIA's management library on a machine with three GPUs, of which the second does not tell its memory. */
#include <stdio.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } Memory;
static long number(void *handle) { return (long)handle - 1; }
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { snprintf(out, size, "580.1"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(long)(index + 1);
    return index < 3 ? 0 : 2;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    int index = -1;
    if (sscanf(uuid, "GPU-%d", &index) != 1 || index > 2) return 6;
    *handle = (void *)(long)(index + 1);
    return 0;
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) { snprintf(out, size, "GPU-%ld", number(handle)); return 0; }
int nvmlDeviceGetName(void *handle, char *out, unsigned size) { snprintf(out, size, "Card %ld", number(handle)); return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    memory->total = 16ULL << 30;
    memory->free = 4ULL << 30;
    return number(handle) == 1 ? 3 : 0;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
