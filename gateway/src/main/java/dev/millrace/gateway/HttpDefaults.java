package dev.millrace.gateway;

/**
 * What the JDK's server reads from system properties once in a process, when its first server is made: so it is set before, by
 * whoever makes one.
 */
public final class HttpDefaults {
    /** Of headers and body together. */
    static final int LONGEST_REQUEST_S = 60;

    /** Of one server: a connection more is closed at once. JDKs before 17.0.5 do not know of it. */
    private static final int MOST_CONNECTIONS = 10_000;

    private static final int READ_BEHIND_A_REFUSAL = 16 << 20;

    private HttpDefaults() {}

    /**
     * Answers leave at once, requests that do not end are given up, agents keep their connections up to a bound, and who sends too much hears so:
     * a connection that is closed while bytes of the body are unread is reset, and the answer lost. What is set stays.
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
