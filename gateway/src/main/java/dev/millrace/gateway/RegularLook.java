package dev.millrace.gateway;

import java.util.concurrent.TimeUnit;

/** A daemon thread that looks again and again whether something takes too long, from its start until it is closed. */
final class RegularLook implements AutoCloseable {
    private final long everyMs;
    private final Runnable look;
    private final Thread thread;

    /** @param look called by its thread alone */
    RegularLook(String name, long everyMs, Runnable look) {
        this.everyMs = everyMs;
        this.look = look;
        this.thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    private void run() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                TimeUnit.MILLISECONDS.sleep(everyMs);
                look.run();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        }
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
