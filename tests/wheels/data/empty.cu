void host() {}
