package dev.millrace.chaos;

import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.garbage.Litter;
import dev.millrace.chaos.halt.HaltAgent;
import dev.millrace.chaos.halt.HaltPoint;
import dev.millrace.chaos.halt.ProtocolPoint;
import dev.millrace.chaos.loss.Compaction;
import dev.millrace.chaos.loss.Lost;
import dev.millrace.chaos.loss.Retention;
import dev.millrace.chaos.loss.TailCut;
import dev.millrace.chaos.loss.UncleanElection;
import dev.millrace.chaos.network.Weather;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.LyingInterceptor;
import dev.millrace.chaos.process.Operator;
import dev.millrace.chaos.process.Part;
import dev.millrace.chaos.process.RoleProcess;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.chaos.process.Suspension;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.LogConnection;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Does faults to a scene, and sees it recover. Owned by one thread. */
final class FaultInflictor {
    private static final String ADMISSION = "admission";
    private static final String BROKER = "broker-";
    private static final long STOP_LIMIT_S = 45;
    private static final long HALT_LIMIT_S = 60;
    private static final long FENCED_LIMIT_S = 25;
    private static final long DISK_LIMIT_S = 30;
    private static final double SLOW_STILL_S = 0.4;
    private static final double SLOW_AWAKE_S = 0.1;
    private static final int MOST_TIMES_TO_A_POINT = 6;
    private static final int VERSIONS = 2;
    private static final double FOUND_OUT_LIMIT_S = 120;
    private static final double NOTICED_S = 3;
    private static final double PILE_UP_S = 4;
    private static final double BY_ITSELF_S = 30;
    private static final int MOST_COMMANDS = 5;

    private final Scene scene;
    private final LogWatch watch;
    private final Litter litter;
    private final LogConnection connection;
    private final double limitSeconds;
    private final List<Lost> lost = new ArrayList<>();
    private final long beganNanos = System.nanoTime();

    /** What is known of a fault when it is over. */
    private final class Course {
        private final Fault fault;
        private final double atSeconds = (System.nanoTime() - beganNanos) / 1e9;
        private final List<String> notes = new ArrayList<>();
        private @Nullable RunMember member;

        Course(Fault fault) {
            this.fault = fault;
        }

        /** It is over, and nobody's part was hit. */
        FaultOutcome over(Optional<Double> run) {
            return new FaultOutcome(
                    fault,
                    atSeconds,
                    fault.kind().target().name().toLowerCase(Locale.ROOT),
                    null,
                    run.orElse(null),
                    notes);
        }

        /** It is over; what counts as recovery comes after the mark. */
        FaultOutcome overAt(LogWatch.Mark mark) throws InterruptedException {
            RunMember hit = member;
            Optional<Double> part = hit == null
                    ? Optional.empty()
                    : watch.await(hit.role(), hit.role() == Part.GENERATOR ? hit.name() : "", 1, mark, limitSeconds);
            Optional<Double> run = watch.await(Part.LEARNER, "", VERSIONS, mark, limitSeconds);
            return new FaultOutcome(
                    fault,
                    atSeconds,
                    hit == null
                            ? fault.kind().target().name().toLowerCase(Locale.ROOT)
                            : hit.role().word(),
                    part.orElse(null),
                    run.orElse(null),
                    notes);
        }
    }

    FaultInflictor(Scene scene, LogWatch watch, LogConnection connection, Litter litter, Duration recoveryLimit) {
        this.litter = litter;
        this.connection = connection;
        this.scene = scene;
        this.watch = watch;
        this.limitSeconds = recoveryLimit.toMillis() / 1e3;
    }

    /** Does a fault and waits until the run goes on, or the limit has passed. */
    FaultOutcome inflict(Fault fault) throws InterruptedException, IOException {
        Course course = new Course(fault);
        return switch (fault.kind()) {
            case KILL -> kill(course, false);
            case EMPTY_STATE -> kill(course, true);
            case TERM -> term(course);
            case HALT -> halt(course);
            case HALT_PROTOCOL -> haltProtocol(course);
            case PAUSE, PAUSE_LONG -> pause(course);
            case ZOMBIE -> zombie(course);
            case BROKER_KILL, BROKER_AWAY, BROKER_AWAY_LONG -> brokerAway(course, true);
            case BROKER_STOP -> brokerAway(course, false);
            case BROKER_PAUSE -> brokerPause(course);
            case BROKER_SLOW -> brokerSlow(course);
            case DISK_FULL -> diskFull(course);
            case DISK_READ_ONLY -> diskReadOnly(course);
            case NETWORK_LATE ->
                network(course, Weather.late(100 + random(fault).nextInt(400)));
            case NETWORK_LOSSY ->
                network(course, Weather.lossy(0.005 + 0.03 * random(fault).nextDouble()));
            case NETWORK_CUT -> network(course, Weather.CUT);
            case NETWORK_SILENT, NETWORK_SILENT_LONG -> network(course, Weather.SILENCE);
            case NETWORK_ONE_WAY ->
                network(course, random(fault).nextBoolean() ? Weather.NO_ANSWERS : Weather.NO_QUESTIONS);
            case GARBAGE -> garbage(course);
            case CLOCK -> clock(course);
            case LIAR -> liar(course);
            case COMPACTION -> compaction(course);
            case TAIL_LOST -> tailLost(course);
            case RETENTION -> retention(course);
            case UNCLEAN_ELECTION -> uncleanElection(course);
        };
    }

    /** What the log has lost so far. */
    List<Lost> lost() {
        return List.copyOf(lost);
    }

    private static SplittableRandom random(Fault fault) {
        return new SplittableRandom(fault.seed());
    }

    private Troupe troupe() {
        return scene.troupe();
    }

    private static void sleep(double seconds) throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep((long) (1e3 * seconds));
    }

    private static void suspend(long pid, double seconds) throws InterruptedException {
        Suspension still = Suspension.of(pid);
        try {
            sleep(seconds);
        } finally {
            still.close();
        }
    }

    /** Everything behind the log's ends as they are now, from that moment on. */
    private LogWatch.Mark since(long nanos) {
        return new LogWatch.Mark(nanos, watch.mark().ends());
    }

    private FaultOutcome kill(Course course, boolean losesState) throws InterruptedException {
        RunMember member = hit(course);
        RoleProcess life = troupe().take(member.name());
        long nanos = System.nanoTime();
        life.kill();
        if (losesState) {
            troupe().loseState(member.name());
        }
        LogWatch.Mark mark = gone(member, nanos);
        troupe().giveBack(member.name());
        return course.overAt(mark);
    }

    private LogWatch.Mark gone(RunMember member, long nanos) {
        if (member.role() == Part.GENERATOR) {
            watch.generatorKilled();
        }
        return since(nanos);
    }

    private RunMember hit(Course course) {
        RunMember member = troupe().member(course.fault.target());
        course.member = member;
        return member;
    }

    private FaultOutcome term(Course course) throws InterruptedException {
        RunMember member = hit(course);
        RoleProcess life = troupe().take(member.name());
        long nanos = System.nanoTime();
        if (!life.stop(STOP_LIMIT_S)) {
            life.kill();
            course.notes.add("did not stop within " + STOP_LIMIT_S + " s");
        }
        LogWatch.Mark mark = since(nanos);
        troupe().giveBack(member.name());
        return course.overAt(mark);
    }

    private FaultOutcome halt(Course course) throws InterruptedException {
        RunMember member = hit(course);
        SplittableRandom random = random(course.fault);
        List<String> topics = member.role().sendsTo();
        String topic = topics.get(random.nextInt(topics.size()));
        HaltPoint.When when = random.nextBoolean() ? HaltPoint.When.BEFORE : HaltPoint.When.AFTER;
        int nth = 1 + random.nextInt(MOST_TIMES_TO_A_POINT);
        return haltAt(
                course,
                member,
                List.of(HaltPoint.option(when, topic, nth)),
                HaltPoint.settings(),
                when.word() + " record " + nth + " to " + topic);
    }

    private FaultOutcome haltProtocol(Course course) throws InterruptedException {
        RunMember member = hit(course);
        SplittableRandom random = random(course.fault);
        List<ProtocolPoint> points = member.role().points();
        ProtocolPoint point = points.get(random.nextInt(points.size()));
        HaltPoint.When when = random.nextBoolean() ? HaltPoint.When.BEFORE : HaltPoint.When.AFTER;
        // a learner makes the versions that follow itself
        boolean isOnce = point == ProtocolPoint.LOAD && member.role() == Part.LEARNER;
        int nth = isOnce ? 1 : 1 + random.nextInt(MOST_TIMES_TO_A_POINT);
        return haltAt(
                course,
                member,
                HaltAgent.options(scene.directory(), when, point, nth),
                List.of(),
                when.word() + " " + point.word() + " " + nth);
    }

    private FaultOutcome haltAt(
            Course course, RunMember member, List<String> options, List<String> settings, String point)
            throws InterruptedException {
        troupe().take(member.name()).kill();
        RoleProcess armed = troupe().again(member.name(), options, settings);
        boolean reached = armed.awaitEnd(HALT_LIMIT_S);
        long nanos = System.nanoTime();
        if (!reached) {
            armed.kill();
        }
        course.notes.add((reached ? "" : "did not come to ")
                + point
                + (reached && armed.exitStatus() != HaltPoint.STATUS ? ": " + armed.lastWords() : ""));
        LogWatch.Mark mark = gone(member, nanos);
        troupe().giveBack(member.name());
        return course.overAt(mark);
    }

    private FaultOutcome pause(Course course) throws InterruptedException {
        RunMember member = hit(course);
        suspend(troupe().of(member.name()).pid(), course.fault.seconds());
        return course.overAt(since(System.nanoTime()));
    }

    private FaultOutcome zombie(Course course) throws InterruptedException {
        RunMember member = hit(course);
        RoleProcess zombie = troupe().take(member.name());
        FaultOutcome outcome;
        Suspension still = Suspension.of(zombie.pid());
        try {
            long nanos = System.nanoTime();
            if (member.role() == Part.TOPOLOGY) {
                troupe().loseState(member.name()); // the zombie has the folder's lock
            }
            LogWatch.Mark mark = since(nanos);
            troupe().again(member.name());
            troupe().giveBack(member.name());
            outcome = course.overAt(mark);
            double left = course.fault.seconds() - (System.nanoTime() - nanos) / 1e9;
            if (left > 0) {
                sleep(left);
            }
        } finally {
            still.close();
        }
        LogWatch.Mark woken = since(System.nanoTime());
        Optional<Double> onwards = watch.await(Part.LEARNER, "", VERSIONS, woken, limitSeconds);
        List<String> notes = new ArrayList<>(outcome.notes());
        if (zombie.awaitEnd(FENCED_LIMIT_S)) {
            notes.add("the zombie ended: " + zombie.lastWords());
        } else {
            notes.add("the zombie did not end by itself");
            if (!zombie.stop(STOP_LIMIT_S)) {
                zombie.kill();
                notes.add("nor when it was asked to");
            }
        }
        return new FaultOutcome(
                outcome.fault(),
                outcome.atSeconds(),
                outcome.part(),
                outcome.partSeconds(),
                onwards.isPresent() ? outcome.runSeconds() : null,
                notes);
    }

    private static int node(Fault fault) {
        return Integer.parseInt(fault.target().substring(fault.target().lastIndexOf('-') + 1)) - 1;
    }

    private FaultOutcome brokerAway(Course course, boolean isKilled) throws InterruptedException {
        int node = node(course.fault);
        LogWatch.Mark before = watch.mark();
        BrokerProcess broker = scene.brokers().brokers().get(node);
        if (isKilled) {
            broker.kill();
        } else {
            broker.close();
        }
        sleep(course.fault.seconds());
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(node);
        return course.overAt(mark);
    }

    private FaultOutcome brokerPause(Course course) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        long pid = scene.brokers().brokers().get(node(course.fault)).pid();
        suspend(pid, course.fault.seconds());
        return course.overAt(before.now());
    }

    private FaultOutcome brokerSlow(Course course) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        long pid = scene.brokers().brokers().get(node(course.fault)).pid();
        long end = System.nanoTime() + (long) (1e9 * course.fault.seconds());
        while (System.nanoTime() < end) {
            suspend(pid, SLOW_STILL_S);
            sleep(SLOW_AWAKE_S);
        }
        return course.overAt(before.now());
    }

    private FaultOutcome diskFull(Course course) throws InterruptedException, IOException {
        int node = node(course.fault);
        LogWatch.Mark before = watch.mark();
        BrokerProcess broker = scene.brokers().brokers().get(node);
        FileSizeLimit.set(broker.pid(), FileSizeLimit.NOTHING_GROWS);
        awaitEnd(course, broker);
        sleep(course.fault.seconds());
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(node);
        return course.overAt(mark);
    }

    /** It gives up sooner or later; where it does not, it is killed. */
    private static void awaitEnd(Course course, BrokerProcess broker) throws InterruptedException {
        for (long ms = 0; ms < DISK_LIMIT_S * 1_000 && broker.isAlive(); ms += 200) {
            TimeUnit.MILLISECONDS.sleep(200);
        }
        if (broker.isAlive()) {
            course.notes.add("the broker bore it for " + DISK_LIMIT_S + " s");
            broker.kill();
        }
    }

    private FaultOutcome diskReadOnly(Course course) throws InterruptedException {
        int node = node(course.fault);
        LogWatch.Mark before = watch.mark();
        ReadOnlyFolder folder = ReadOnlyFolder.of(scene.brokerDirectory(node));
        try {
            awaitEnd(course, scene.brokers().brokers().get(node));
            sleep(course.fault.seconds());
        } finally {
            folder.close();
        }
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(node);
        return course.overAt(mark);
    }

    private FaultOutcome clock(Course course) throws InterruptedException {
        SplittableRandom random = random(course.fault);
        Duration shift = Duration.ofHours(random.nextBoolean() ? 1 + random.nextInt(23) : -1 - random.nextInt(23));
        course.notes.add(String.format(Locale.ROOT, "%+d h", shift.toHours()));
        boolean isBroker = course.fault.target().startsWith(BROKER);
        long pid = isBroker
                ? scene.brokers().brokers().get(node(course.fault)).pid()
                : troupe().of(hit(course).name()).pid();
        try {
            scene.clock().set(pid, shift);
            LogWatch.Mark wrong = since(System.nanoTime());
            sleep(course.fault.seconds());
            boolean goesOn = watch.await(Part.LEARNER, "", VERSIONS, wrong, 0).isPresent();
            course.notes.add(goesOn ? "versions meanwhile" : "no versions meanwhile");
            scene.clock().set(pid, Duration.ZERO);
        } catch (ChaosException gone) {
            course.notes.add(String.valueOf(gone.getMessage()));
        }
        long nanos = System.nanoTime();
        if (!isBroker) {
            startAgainIfTold(course);
        }
        FaultOutcome outcome = course.overAt(since(nanos));
        return isBroker ? outcome.of("broker") : outcome;
    }

    /** Does what the alarm about a clock that was set back says, where it stands. */
    private void startAgainIfTold(Course course) throws InterruptedException {
        sleep(NOTICED_S);
        String name = course.fault.target();
        if (scene.operator().isStanding(troupe().of(name), "clock-set-back")) {
            course.notes.add("started again, as its alarm says");
            RoleProcess life = troupe().take(name);
            if (!life.stop(STOP_LIMIT_S)) {
                life.kill();
            }
            troupe().giveBack(name);
        }
    }

    private FaultOutcome garbage(Course course) throws InterruptedException {
        course.notes.add(litter.drop(ChaosPlan.PREFIX + course.fault.target(), course.fault.seed()));
        return course.overAt(since(System.nanoTime()));
    }

    private FaultOutcome network(Course course, Weather weather) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        scene.proxy(node(course.fault)).set(weather);
        try {
            sleep(course.fault.seconds());
        } finally {
            scene.fairWeather();
        }
        return course.overAt(before.now());
    }

    private FaultOutcome liar(Course course) throws InterruptedException {
        RunMember member = hit(course);
        troupe().take(member.name()).kill();
        watch.generatorKilled();
        long nanos = System.nanoTime();
        RoleProcess liar = troupe().again(member.name(), List.of(), LyingInterceptor.settings());
        Optional<String> lift = Optional.empty();
        while (lift.isEmpty() && (System.nanoTime() - nanos) / 1e9 < FOUND_OUT_LIMIT_S) {
            sleep(1);
            lift = scene.operator().remedy(troupe().of(ADMISSION), "quarantine", member.name());
        }
        if (lift.isEmpty()) {
            course.notes.add("NOT FOUND OUT within " + Math.round(FOUND_OUT_LIMIT_S) + " s");
        } else {
            course.notes.add(String.format(
                    Locale.ROOT, "in quarantine after %.1f s, beginning included", (System.nanoTime() - nanos) / 1e9));
            LogWatch.Mark without = since(System.nanoTime());
            if (watch.await(Part.LEARNER, "", VERSIONS, without, limitSeconds).isEmpty()) {
                course.notes.add("NO VERSION without it");
            }
        }
        liar.kill();
        LogWatch.Mark mark = gone(member, System.nanoTime());
        troupe().giveBack(member.name());
        lift.ifPresent(command -> enter(course, command));
        FaultOutcome outcome = course.overAt(mark);
        return lift.isPresent() ? outcome : outcome.failed();
    }

    private FaultOutcome compaction(Course course) throws InterruptedException {
        try (Compaction compaction = Compaction.of(connection)) {
            long before = compaction.bytes();
            sleep(course.fault.seconds());
            course.notes.add(String.format(
                    Locale.ROOT,
                    "%d topics, from %.1f to %.1f MB",
                    compaction.topics().size(),
                    before / 1e6,
                    compaction.bytes() / 1e6));
        }
        return kill(course, true);
    }

    private FaultOutcome tailLost(Course course) throws InterruptedException {
        int node = random(course.fault).nextInt(scene.brokers().brokers().size());
        watch.hold();
        try {
            scene.brokers().brokers().get(node).kill();
            TailCut.of(scene.brokerDirectory(node), topic(course.fault), random(course.fault))
                    .ifPresent(cut -> lost(course, cut));
            sleep(course.fault.seconds());
            scene.brokers().restart(node);
        } finally {
            watch.goOn();
        }
        return overAfterLoss(course);
    }

    private FaultOutcome retention(Course course) throws InterruptedException {
        List<Suspension> readers = new ArrayList<>();
        try {
            for (RunMember member : troupe().members()) {
                if (member.role().reads().contains(course.fault.target())) {
                    readers.add(Suspension.of(troupe().of(member.name()).pid()));
                }
            }
            sleep(PILE_UP_S);
            Retention.of(connection, topic(course.fault), random(course.fault)).ifPresent(cut -> lost(course, cut));
        } finally {
            readers.forEach(Suspension::close);
        }
        return overAfterLoss(course);
    }

    private FaultOutcome uncleanElection(Course course) throws InterruptedException {
        String topic = topic(course.fault);
        int number = random(course.fault).nextInt(UncleanElection.partitions(connection, topic));
        watch.hold();
        try (UncleanElection election = UncleanElection.of(connection, topic, number)) {
            int follower = election.follower() - 1;
            int leader = election.leader() - 1;
            scene.brokers().brokers().get(follower).kill();
            election.awaitAlone();
            sleep(course.fault.seconds());
            long end = election.end();
            scene.brokers().brokers().get(leader).kill();
            scene.brokers().restart(follower);
            election.elect(end)
                    .ifPresentOrElse(
                            cut -> lost(course, cut),
                            () -> course.notes.add("nothing was written to " + topic + "-" + number + " meanwhile"));
            scene.brokers().restart(leader);
            election.restore();
        } finally {
            watch.goOn();
        }
        return overAfterLoss(course);
    }

    private static String topic(Fault fault) {
        String topic = fault.target();
        return topic.startsWith("_") ? topic : ChaosPlan.PREFIX + topic;
    }

    private void lost(Course course, Lost cut) {
        lost.add(cut);
        course.notes.add(cut.toString());
    }

    /** Waits whether the run goes on by itself; where it does not, or something is left to repair, does what the commands advise. */
    private FaultOutcome overAfterLoss(Course course) throws InterruptedException {
        LogWatch.Mark mark = since(System.nanoTime());
        Optional<Double> run = watch.await(Part.LEARNER, "", VERSIONS, mark, BY_ITSELF_S);
        for (int commands = 0; commands < MOST_COMMANDS; commands++) {
            Optional<String> advice = advice(run.isPresent());
            if (advice.isEmpty() && run.isPresent()) {
                break;
            }
            advice.ifPresent(command -> enter(course, command));
            double left = mark.secondsTo(System.nanoTime()) > limitSeconds ? 0 : BY_ITSELF_S;
            run = watch.await(Part.LEARNER, "", VERSIONS, advice.isPresent() ? since(System.nanoTime()) : mark, left)
                    .map(seconds -> mark.secondsTo(System.nanoTime()));
        }
        return course.over(run);
    }

    /** What {@code repair} says is to be entered; where it names nothing and the run does not go on, what an alarm says. */
    private Optional<String> advice(boolean goesOn) {
        Operator.Said said = scene.operator().enter(connection.command("repair"));
        Optional<String> ofRepair = said.status() == 0 ? Optional.empty() : said.advice();
        return ofRepair.isPresent() || goesOn
                ? ofRepair
                : troupe().alive().values().stream()
                        .flatMap(life -> scene.operator().remedy(life).stream())
                        .findFirst();
    }

    private void enter(Course course, String command) {
        if (command.startsWith("millrace rollback") || command.contains(" new-epoch")) {
            troupe().newEpoch();
        }
        Operator.Said said = scene.operator().enter(command);
        course.notes.add("entered: "
                + command.replace(connection.command("").strip().replace("millrace  ", ""), "...")
                + (said.status() == 0 ? "" : ", which ended with status " + said.status() + ": " + said.lines()));
    }
}
