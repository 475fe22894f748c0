/* A libcuda.so.1 with faults, driven by FAKE_NVIDIA as fake_nvml.c: cuda=12080, cuinit=804, cumode=hang, shown=0:2. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text(const char *name) {
    const char *place = getenv("FAKE_NVIDIA");
    size_t length = strlen(name);
    while (place && *place) {
        if (!strncmp(place, name, length) && place[length] == '=') return place + length + 1;
        place = strchr(place, ',');
        if (place) place++;
    }
    return NULL;
}

static int number(const char *name, int otherwise) { return text(name) ? atoi(text(name)) : otherwise; }

int cuDriverGetVersion(int *to) {
#ifdef FAKE_CUDA
    *to = FAKE_CUDA;
#else
    *to = number("cuda", 12080);
#endif
    return 0;
}

int cuInit(unsigned int flags) {
    const char *mode = text("cumode");
    if (mode && !strncmp(mode, "hang", 4)) for (;;) pause();
    if (mode && !strncmp(mode, "crash", 5)) raise(SIGSEGV);
    return number("cuinit", 0);
}

/* shown=0:2 are the devices after CUDA_VISIBLE_DEVICES. */
static int shown(int *to) {
    const char *place = text("shown");
    int count = 0;
    if (!place) {
        for (; count < number("gpus", 1); count++) to[count] = count;
        return count;
    }
    while (*place >= '0' && *place <= '9' && count < 64) {
        to[count++] = atoi(place);
        place += strcspn(place, ":,");
        if (*place != ':') break;
        place++;
    }
    return count;
}

int cuDeviceGetCount(int *to) { int list[64]; *to = shown(list); return 0; }
int cuDeviceGet(int *to, int place) { *to = place; return 0; }
int cuDeviceGetPCIBusId(char *to, int room, int device) {
    int list[64];
    if (device >= shown(list)) return 101;
    snprintf(to, room, "0000:%02X:00.0", 0x18 + list[device]);
    return 0;
}
