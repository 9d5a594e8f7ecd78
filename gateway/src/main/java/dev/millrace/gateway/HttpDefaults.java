package dev.millrace.gateway;

/** System properties of the JDK's HTTP server, which reads them once, so they are set before the first server. */
public final class HttpDefaults {
    /** Headers and body. */
    static final int LONGEST_REQUEST_S = 60;

    /** Per server; JDKs before 17.0.5 ignore it. */
    private static final int MOST_CONNECTIONS = 10_000;

    private static final int READ_BEHIND_A_REFUSAL = 16 << 20;

    private HttpDefaults() {}

    /**
     * Sets no delay, a request timeout, a bounded number of idle connections, and draining of refused bodies, without
     * which a reset would lose the answer.
     */
    public static void apply() {
        setUnlessSet("sun.net.httpserver.nodelay", "true"); // else each answer waits 40 ms for an acknowledgement
        setUnlessSet("sun.net.httpserver.maxReqTime", Integer.toString(LONGEST_REQUEST_S));
        setUnlessSet("sun.net.httpserver.drainAmount", Integer.toString(READ_BEHIND_A_REFUSAL));
        setUnlessSet("jdk.httpserver.maxConnections", Integer.toString(MOST_CONNECTIONS));
        setUnlessSet("sun.net.httpserver.maxIdleConnections", Integer.toString(MOST_CONNECTIONS));
        setUnlessSet("sun.net.httpserver.idleInterval", "120"); // seconds
    }

    private static void setUnlessSet(String name, String value) {
        if (System.getProperty(name) == null) {
            System.setProperty(name, value);
        }
    }
}
