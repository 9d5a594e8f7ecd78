package dev.millrace.chaos;

import dev.millrace.chaos.network.Weather;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.Suspension;
import dev.millrace.infra.broker.BrokerProcess;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Takes a broker away: its process, its disk, or the network before it. What it has acknowledged stays. */
final class BrokerFaults {
    private static final long DISK_LIMIT_S = 30;
    private static final long SLOW_STILL_MS = 400;
    private static final long SLOW_AWAKE_MS = 100;

    private final Scene scene;
    private final LogWatch watch;

    BrokerFaults(Scene scene, LogWatch watch) {
        this.scene = scene;
        this.watch = watch;
    }

    FaultOutcome kill(FaultCourse course) throws InterruptedException {
        return away(course, BrokerProcess::kill);
    }

    FaultOutcome stop(FaultCourse course) throws InterruptedException {
        return away(course, BrokerProcess::close);
    }

    private FaultOutcome away(FaultCourse course, Consumer<BrokerProcess> ending) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        ending.accept(broker(course));
        course.last();
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(course.node());
        return course.overAt(mark);
    }

    private BrokerProcess broker(FaultCourse course) {
        return scene.brokers().brokers().get(course.node());
    }

    FaultOutcome pause(FaultCourse course) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        Suspension still = Suspension.of(broker(course).pid());
        try {
            course.last();
        } finally {
            still.close();
        }
        return course.overAt(before.now());
    }

    FaultOutcome slow(FaultCourse course) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        long pid = broker(course).pid();
        long end = System.nanoTime() + (long) (1e9 * course.fault().seconds());
        while (System.nanoTime() < end) {
            Suspension still = Suspension.of(pid);
            try {
                TimeUnit.MILLISECONDS.sleep(SLOW_STILL_MS);
            } finally {
                still.close();
            }
            TimeUnit.MILLISECONDS.sleep(SLOW_AWAKE_MS);
        }
        return course.overAt(before.now());
    }

    FaultOutcome diskFull(FaultCourse course) throws InterruptedException, IOException {
        LogWatch.Mark before = watch.mark();
        BrokerProcess broker = broker(course);
        FileSizeLimit.set(broker.pid(), FileSizeLimit.NOTHING_GROWS);
        awaitEnd(course, broker);
        course.last();
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(course.node());
        return course.overAt(mark);
    }

    FaultOutcome diskReadOnly(FaultCourse course) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        ReadOnlyFolder folder = ReadOnlyFolder.of(scene.brokerDirectory(course.node()));
        try {
            awaitEnd(course, broker(course));
            course.last();
        } finally {
            folder.close();
        }
        LogWatch.Mark mark = before.now();
        scene.brokers().restart(course.node());
        return course.overAt(mark);
    }

    /** It gives up sooner or later; where it does not, it is killed. */
    private static void awaitEnd(FaultCourse course, BrokerProcess broker) throws InterruptedException {
        for (long ms = 0; ms < DISK_LIMIT_S * 1_000 && broker.isAlive(); ms += 200) {
            TimeUnit.MILLISECONDS.sleep(200);
        }
        if (broker.isAlive()) {
            course.note("the broker bore it for " + DISK_LIMIT_S + " s");
            broker.kill();
        }
    }

    FaultOutcome network(FaultCourse course, Weather weather) throws InterruptedException {
        LogWatch.Mark before = watch.mark();
        scene.proxy(course.node()).set(weather);
        try {
            course.last();
        } finally {
            scene.fairWeather();
        }
        return course.overAt(before.now());
    }
}
