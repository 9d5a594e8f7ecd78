package dev.millrace.chaos.fault;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What is done to a run. */
public enum FaultKind {
    /** SIGKILL; the supervisor starts it again. */
    KILL(Target.MEMBER, 12, 0, 0, "killed (SIGKILL) and started again"),
    /** SIGTERM. */
    TERM(Target.MEMBER, 5, 0, 0, "asked to stop (SIGTERM) and started again"),
    /** Ends by itself at a named point of its protocol. */
    HALT(Target.MEMBER, 8, 0, 0, "halted before or after a send to a topic of its own, and started again"),
    /** The same at a point that is no send. */
    HALT_PROTOCOL(
            Target.MEMBER,
            6,
            0,
            0,
            "halted before or after a commit, offsets, a manifest or a load, and started again"),
    /** SIGSTOP, then SIGCONT. */
    PAUSE(Target.MEMBER, 4, 12, 22, "suspended (SIGSTOP) beyond every session, then let go on"),
    /** The same for longer than any timeout of Kafka's. */
    PAUSE_LONG(Target.MEMBER, 1, 70, 75, "suspended (SIGSTOP) for 70 s and more"),
    /** SIGSTOP; another takes its place; SIGCONT. */
    ZOMBIE(Target.MEMBER, 3, 12, 18, "suspended, replaced, then let go on as a zombie"),
    /** SIGKILL, and its folder of state is gone. */
    EMPTY_STATE(Target.TOPOLOGY, 3, 0, 0, "killed and started again on an empty folder of state"),
    /** Its readers' topics are compacted as far as it goes, before it begins anew. */
    COMPACTION(
            Target.MEMBER,
            2,
            8,
            14,
            "every compacted topic compacted to its last record of each key; then killed, its state gone, and started again"),
    BROKER_KILL(Target.BROKER, 3, 0, 0, "killed (SIGKILL) and started again at once"),
    BROKER_AWAY(Target.BROKER, 2, 8, 25, "killed and away for a time"),
    BROKER_AWAY_LONG(Target.BROKER, 1, 58, 62, "killed and away for 58 s and more"),
    BROKER_STOP(Target.BROKER, 1, 2, 6, "stopped in order and started again"),
    BROKER_PAUSE(Target.BROKER, 2, 8, 20, "suspended (SIGSTOP), then let go on"),
    /** SIGSTOP and SIGCONT in turns: what a machine with a slow disk, or with too much to do, looks like. */
    BROKER_SLOW(Target.BROKER, 2, 10, 25, "stands still for four fifths of the time"),
    /** Every write beyond a file's size fails, as on a full disk. */
    DISK_FULL(Target.BROKER, 1, 4, 8, "disk full: every append fails; then room, and started again"),
    /** Every write to its folder is refused, also to open files. */
    DISK_READ_ONLY(Target.BROKER, 1, 4, 8, "disk read-only: every write is refused; then writable, and started again"),
    NETWORK_LATE(Target.NETWORK, 2, 6, 15, "every piece of a connection late"),
    NETWORK_LOSSY(Target.NETWORK, 3, 6, 15, "connections reset at random"),
    NETWORK_CUT(Target.NETWORK, 3, 4, 20, "connections reset and refused"),
    NETWORK_SILENT(Target.NETWORK, 2, 8, 25, "nothing arrives and nobody is told"),
    NETWORK_SILENT_LONG(Target.NETWORK, 1, 120, 125, "nothing arrives for 120 s and more"),
    NETWORK_ONE_WAY(Target.NETWORK, 2, 6, 20, "nothing arrives in one direction"),
    /** Records that nobody should write. */
    GARBAGE(Target.TOPIC, 8, 0, 0, "noise, halves, copies and records under other keys on a topic"),
    /** As its own code and Kafka's see it. */
    CLOCK(Target.PROCESS, 3, 10, 25, "wall clock set hours forwards or back while it runs, then right again"),
    /** Its log-probs are none of any version's. */
    LIAR(Target.GENERATOR, 1, 0, 0, "lies about its log-probs until it is in quarantine, which the command then lifts"),
    /** Whole batches of records, acknowledged or not, as a power loss takes them. */
    TAIL_LOST(Target.LOG, 6, 1, 4, "the end of a topic lost while the broker was away"),
    /** Records that nobody has read yet. */
    RETENTION(Target.UNREAD, 3, 0, 0, "records deleted that are still needed"),
    /** Of three brokers. */
    UNCLEAN_ELECTION(
            Target.COPIES,
            3,
            3,
            6,
            "a copy that is behind elected as the leader: what was acknowledged meanwhile is gone");

    /** What a fault is done to. */
    public enum Target {
        MEMBER,
        TOPOLOGY,
        BROKER,
        NETWORK,
        TOPIC,
        GENERATOR,
        /** A member or a broker. */
        PROCESS,
        /** A topic with several copies; each in turn. */
        COPIES,
        /** A topic that can lose its end; each in turn. */
        LOG,
        /** A topic whose records somebody waits for; each in turn. */
        UNREAD;

        /** Whether each of this kind is hit before one is hit again. */
        boolean isInTurn() {
            return this == LOG || this == UNREAD || this == COPIES;
        }
    }

    private final Target target;
    private final int weight;
    private final double leastSeconds;
    private final double mostSeconds;
    private final String words;

    FaultKind(Target target, int weight, double leastSeconds, double mostSeconds, String words) {
        this.target = target;
        this.weight = weight;
        this.leastSeconds = leastSeconds;
        this.mostSeconds = mostSeconds;
        this.words = words;
    }

    /** What it is done to. */
    public Target target() {
        return target;
    }

    /** Relative frequency of its draws. */
    int weight() {
        return weight;
    }

    double leastSeconds() {
        return leastSeconds;
    }

    double mostSeconds() {
        return mostSeconds;
    }

    /** What is done. */
    public String words() {
        return words;
    }

    /**
     * Whether it takes acknowledged records away, so that what they were is lost, and the promise is another: it is known what became of
     * it, and the run continues.
     */
    public boolean losesRecords() {
        return this == TAIL_LOST || this == RETENTION || this == UNCLEAN_ELECTION;
    }

    /** Its spelling: {@code broker-kill}. */
    public String word() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The kind of this word. */
    public static Optional<FaultKind> of(String word) {
        return Arrays.stream(values()).filter(kind -> kind.word().equals(word)).findFirst();
    }

    /** All words. */
    public static List<String> allWords() {
        return Arrays.stream(values()).map(FaultKind::word).toList();
    }
}
