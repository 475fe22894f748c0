/* A libnvidia-ml.so.1 with faults, compiled against NVIDIA's own nvml.h so that its structures are the true ones.
 *
 * One variable drives it: FAKE_NVIDIA="gpus=2,driver=570.86.15,cuda=12080,init=18,mode=crash,lost=1,mig=1,…".
 * Nothing in it was measured on a device: names and numbers are those of NVIDIA's data sheets or plainly made up.
 */
#include <nvml.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text(const char *name, const char *otherwise) {
    static char buffers[8][128];
    static int next;
    const char *place = getenv("FAKE_NVIDIA");
    size_t length = strlen(name);
    while (place && *place) {
        if (!strncmp(place, name, length) && place[length] == '=') {
            char *buffer = buffers[next++ % 8];
            size_t end = strcspn(place + length + 1, ",");
            if (end > 127) end = 127;
            memcpy(buffer, place + length + 1, end);
            buffer[end] = 0;
            return buffer;
        }
        place = strchr(place, ',');
        if (place) place++;
    }
    return otherwise;
}

static int number(const char *name, int otherwise) {
    const char *found = text(name, NULL);
    return found ? atoi(found) : otherwise;
}

static void misbehave(const char *where) {
    if (strcmp(text("at", "init"), where)) return;
    const char *mode = text("mode", "");
    if (!strcmp(mode, "crash")) raise(SIGSEGV);
    if (!strcmp(mode, "abort")) abort();
    if (!strcmp(mode, "exit")) _exit(3);
    if (!strcmp(mode, "slow")) usleep(300000);
    if (!strcmp(mode, "noise")) { printf("noise on stdout\n"); fflush(stdout); fprintf(stderr, "noise on stderr\n"); }
    if (!strcmp(mode, "hang")) { signal(SIGTERM, SIG_IGN); for (;;) pause(); }
}

static int index_of(nvmlDevice_t device) { return (int)(long)device - 1; }
static int chosen(const char *name, nvmlDevice_t device) { return number(name, -1) == index_of(device); }
static nvmlReturn_t put(char *to, unsigned int room, const char *from) {
    if (strlen(from) + 1 > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, from);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { misbehave("init"); return number("init", 0); }
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
        case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
        case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int room) { return put(to, room, text("driver", "570.86.15")); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = number("cuda", 12080); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *to) { misbehave("count"); *to = number("gpus", 1); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int place, nvmlDevice_t *to) {
    misbehave("device");
    if ((int)place >= number("gpus", 1)) return NVML_ERROR_INVALID_ARGUMENT;
    if ((int)place == number("lost", -1)) return NVML_ERROR_GPU_IS_LOST;
    *to = (nvmlDevice_t)(long)(place + 1);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *to, unsigned int room) {
    if (chosen("reset", device)) return NVML_ERROR_RESET_REQUIRED;
    return put(to, room, chosen("other", device) ? "NVIDIA T4" : text("name", "NVIDIA H100 80GB HBM3"));
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned int room) {
    char uuid[96];
    if (chosen("reset", device)) return NVML_ERROR_RESET_REQUIRED;
    if (index_of(device) >= 1000)
        snprintf(uuid, sizeof uuid, "MIG-%08x-1111-2222-3333-444444444444", index_of(device));
    else
        snprintf(uuid, sizeof uuid, "GPU-%08x-1111-2222-3333-444444444444", index_of(device) + 0xabc0);
    return put(to, room, uuid);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *to) {
    memset(to, 0, sizeof *to);
    to->bus = 0x18 + index_of(device);
    to->pciDeviceId = 0x233010de;
    snprintf(to->busIdLegacy, sizeof to->busIdLegacy, "0000:%02X:00.0", to->bus);
    snprintf(to->busId, sizeof to->busId, "00000000:%02X:00.0", to->bus);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *to) {
    to->total = 85520809984ull;
    to->used = 1048576ull * (unsigned)number("used", 3);
    to->free = to->total - to->used;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    *major = chosen("other", device) ? 7 : 9;
    *minor = chosen("other", device) ? 5 : 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    if (number("consumer", 0)) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = chosen("mig", device);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *to) { *to = 7; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int place, nvmlDevice_t *to) {
    if (place >= 2) return NVML_ERROR_NOT_FOUND;
    *to = (nvmlDevice_t)(long)(1000 + 10 * index_of(device) + place + 1);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    if (number("consumer", 0)) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *to) {
    *to = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counter == NVML_VOLATILE_ECC ? (unsigned)number("ecc", 0) : 77;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *to) {
    *to = number("persistence", 1) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending, unsigned int *failed) {
    if (number("consumer", 0)) return NVML_ERROR_NOT_SUPPORTED;
    *corrected = 1;
    *uncorrected = 2;
    *pending = chosen("pending", device);
    *failed = chosen("failed", device);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *to) {
    if (number("skew", 0)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    to->status = NVML_SUCCESS;
    to->state = number("fabric", NVML_GPU_FABRIC_STATE_COMPLETED);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *to) {
    to->status = NVML_SUCCESS;
    to->state = number("fabric", NVML_GPU_FABRIC_STATE_COMPLETED);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *to) {
    if (type != NVML_CLOCK_SM) return NVML_ERROR_INVALID_ARGUMENT;
    *to = number("clock", 1980);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *to) {
    *to = 1000u * (unsigned)number("watts", 700);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *to) {
    if (number("consumer", 0)) return NVML_ERROR_NOT_SUPPORTED;
    if (link >= 18) return NVML_ERROR_INVALID_ARGUMENT;
    *to = chosen("unlinked", device) && link == 3 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}
