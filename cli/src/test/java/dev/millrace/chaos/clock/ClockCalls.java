package dev.millrace.chaos.clock;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Sends a class' calls that ask for the time to {@link ShiftedClock}. */
final class ClockCalls {
    private static final int API = Opcodes.ASM9;
    private static final String SHIFTED = Type.getInternalName(ShiftedClock.class);
    /** Of a call: owner, name, and what it takes and gives. */
    private static final Map<List<String>, String> CALLS = Map.of(
            List.of("java/lang/System", "currentTimeMillis", "()J"), "()J",
            List.of("java/time/Instant", "now", "()Ljava/time/Instant;"), "()Ljava/time/Instant;",
            List.of("java/time/Clock", "millis", "()J"), "(Ljava/time/Clock;)J",
            List.of("java/time/Clock", "instant", "()Ljava/time/Instant;"), "(Ljava/time/Clock;)Ljava/time/Instant;");

    private ClockCalls() {}

    /** The class with its calls sent elsewhere; empty if it has none of them. */
    static Optional<byte[]> shifted(byte[] type) {
        ClassReader reader = new ClassReader(type);
        ClassWriter writer = new ClassWriter(reader, 0);
        Calls calls = new Calls(writer);
        reader.accept(calls, 0);
        return calls.found ? Optional.of(writer.toByteArray()) : Optional.empty();
    }

    private static final class Calls extends ClassVisitor {
        private boolean found;

        Calls(ClassVisitor next) {
            super(API, next);
        }

        @Override
        public MethodVisitor visitMethod(
                int access,
                String name,
                String descriptor,
                @Nullable String signature,
                String @Nullable [] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            return new MethodVisitor(API, Objects.requireNonNull(next)) {
                @Override
                public void visitMethodInsn(int code, String owner, String call, String type, boolean isInterface) {
                    String other = CALLS.get(List.of(owner, call, type));
                    if (other == null) {
                        super.visitMethodInsn(code, owner, call, type, isInterface);
                    } else {
                        found = true;
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, SHIFTED, call, other, false);
                    }
                }

                @Override
                public void visitInvokeDynamicInsn(String call, String type, Handle bootstrap, Object... arguments) {
                    Object[] other = arguments.clone();
                    for (int i = 0; i < other.length; i++) {
                        other[i] = other[i] instanceof Handle handle ? handle(handle) : other[i];
                    }
                    super.visitInvokeDynamicInsn(call, type, bootstrap, other);
                }
            };
        }

        /** A method reference such as {@code clock::millis}. */
        private Handle handle(Handle handle) {
            String other = CALLS.get(List.of(handle.getOwner(), handle.getName(), handle.getDesc()));
            if (other == null) {
                return handle;
            }
            found = true;
            return new Handle(Opcodes.H_INVOKESTATIC, SHIFTED, handle.getName(), other, false);
        }
    }
}
