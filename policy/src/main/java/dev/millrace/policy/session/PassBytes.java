package dev.millrace.policy.session;

/** What a pass takes in memory, growing with the number of its sequences. */
@FunctionalInterface
interface PassBytes {
    long of(int sequences, int paddedLength);
}
