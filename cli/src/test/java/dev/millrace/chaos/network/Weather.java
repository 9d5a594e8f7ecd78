package dev.millrace.chaos.network;

/**
 * What the network does to the bytes between clients and a broker.
 *
 * @param isCut connections are reset, and new ones are refused
 * @param reachesBroker whether bytes of clients arrive; those that do not are held, and arrive when they do again
 * @param reachesClients whether the broker's bytes arrive
 * @param delayMs how much later each piece arrives
 * @param loss probability, of each piece, that its connection is reset in its place
 */
public record Weather(boolean isCut, boolean reachesBroker, boolean reachesClients, int delayMs, double loss) {
    /** Everything arrives at once. */
    public static final Weather FAIR = new Weather(false, true, true, 0, 0);
    /** Nothing arrives, and everybody is told. */
    public static final Weather CUT = new Weather(true, false, false, 0, 0);
    /** Nothing arrives, and nobody is told. */
    public static final Weather SILENCE = new Weather(false, false, false, 0, 0);
    /** What clients say arrives, and no answer does. */
    public static final Weather NO_ANSWERS = new Weather(false, true, false, 0, 0);
    /** What clients say does not arrive. */
    public static final Weather NO_QUESTIONS = new Weather(false, false, true, 0, 0);

    /** Everything arrives so much later. */
    public static Weather late(int delayMs) {
        return new Weather(false, true, true, delayMs, 0);
    }

    /** Connections break at random. */
    public static Weather lossy(double loss) {
        return new Weather(false, true, true, 0, loss);
    }
}
