package dev.millrace.policy.session;

@FunctionalInterface
interface PassBytes {
    long of(int sequences, int paddedLength);
}
