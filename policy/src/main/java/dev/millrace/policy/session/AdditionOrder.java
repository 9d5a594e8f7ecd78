package dev.millrace.policy.session;

import java.util.concurrent.CancellationException;

/**
 * Orders the additions of several threads to the parts of one sum. Each part is added to in ticket order, so that its
 * bits do not depend on thread timing. The holder of a ticket must add to every part, and tickets must be taken in
 * order, otherwise the threads deadlock. Thread-safe.
 */
final class AdditionOrder {
    private final int[] due;
    private boolean failed;

    AdditionOrder(int parts) {
        this.due = new int[parts];
    }

    /**
     * Waits until all earlier tickets have added to a part.
     *
     * @throws CancellationException if one of them was cancelled, or the thread is interrupted; the flag stays set
     */
    synchronized void await(int part, int ticket) {
        while (failed || due[part] != ticket) {
            if (failed) {
                throw new CancellationException("another part of the gradient could not be found");
            }
            try {
                wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new CancellationException("interrupted while earlier micro-batches add to the gradient");
            }
        }
    }

    /** Lets the next ticket add to a part. */
    synchronized void added(int part) {
        due[part]++;
        notifyAll();
    }

    /** Ends all waiting, now and later. */
    synchronized void fail() {
        failed = true;
        notifyAll();
    }
}
