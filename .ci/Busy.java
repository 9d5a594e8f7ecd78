/** Keeps every core busy until it or its parent process ends; the profile stress runs tests next to it. */
class Busy {
    static volatile long turns;

    public static void main(String[] arguments) throws InterruptedException {
        for (int core = 0; core < Runtime.getRuntime().availableProcessors(); core++) {
            Thread thread = new Thread(() -> {
                while (true) {
                    turns++;
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().join());
    }
}
