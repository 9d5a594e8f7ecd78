package dev.millrace.policy.session;

/** Memory of a pass by its number of sequences. */
@FunctionalInterface
interface PassBytes {
    long of(int sequences, int paddedLength);
}
