package dev.millrace.learner;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.errors.TimeoutException;

/** Real producers, of whose commits some find that their transaction was given up, and some are made and not answered. */
final class DisturbedCommits implements VersionCommitter.Producers {
    private final Set<Integer> givenUp;
    private final Set<Integer> unanswered;
    private final Runnable giveUp;
    private int count;

    /**
     * @param givenUp    which commits, from 1, counted over all producers
     * @param unanswered likewise
     * @param giveUp     what the broker does before such a commit
     */
    DisturbedCommits(Set<Integer> givenUp, Set<Integer> unanswered, Runnable giveUp) {
        this.givenUp = givenUp;
        this.unanswered = unanswered;
        this.giveUp = giveUp;
    }

    /** Commits that were tried. */
    int count() {
        return count;
    }

    @Override
    @SuppressWarnings("unchecked")
    public Producer<byte[], byte[]> create(Map<String, Object> properties) {
        Producer<byte[], byte[]> real = VersionCommitter.Producers.kafka().create(properties);
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                    boolean isCommit = method.getName().equals("commitTransaction");
                    if (isCommit && givenUp.contains(++count)) {
                        giveUp.run();
                    }
                    try {
                        Object result = method.invoke(real, arguments);
                        if (isCommit && unanswered.contains(count)) {
                            throw new TimeoutException("no answer");
                        }
                        return result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
