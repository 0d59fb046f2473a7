# breccia: versioned Zarr arrays in one SQLite file.
#
# `make help` lists the targets. What a caller may set:
#   CC CFLAGS CPPFLAGS LDFLAGS   as everywhere
#   SQLITE=DIR    compiles DIR/sqlite3.c in, instead of the system's SQLite
#   WERROR=1      warnings are errors
#   TEST=NAMES    suites of the C tests, or `cli`; SKIP=cli leaves those of the command out
#   MUTANTS=N, SEED=N, ONLY=TEXTS, JOBS=N   for `make mutants`: sample size, its seed, which files,
#                 how many at once
#   STEPS=N, SEED=N   for `make model` and `make soak`
#   FLIPS=N, SEED=N, JOBS=N, KIND=TEXT, FORK=1   for `make flips`
#   FUZZ=NAME     one harness of `make fuzz`; SECONDS for each, or RUNS; SEED; JOBS at a time
#   PYTHONS='P...', LANES='L...', TORCH=1   for `make python-test`: see python/tests/run.sh
#   PYTHON=P, SYSTEM=1, SQLITE=DIR, ZSTD=DIR   for `make wheel`: see python/wheel.sh
#   SHOTS=FOLDER  for `make page-test`: where pictures of the page go
#   V=1           shows the commands
#   PREFIX, DESTDIR              for install and uninstall
#
# Sources are found by name: src/LAYER, codecs and codecs/lib make the library, cli and cli/cmd
# the command, tests/*/test_*.c the tests. A new file needs no line here.

# ---- how to compile ---------------------------------------------------------

CC     ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
MODE   ?= release

# A mode adds flags and has its own objects; only release writes to build/ itself.
FLAGS_release  := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
FLAGS_asan     := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
                  -fno-sanitize-recover=all
FLAGS_tsan     := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
FLAGS_fuzz     := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
                  -fno-sanitize-recover=all
# The command that `make static` makes: .ci/static.sh says how.
FLAGS_static   := $(FLAGS_release) -fno-pic -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -DBRC_STATIC
ifndef FLAGS_$(MODE)
$(error MODE is release, asan, tsan, fuzz or static, not "$(MODE)")
endif

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes \
            -Wmissing-prototypes -Wpointer-arith $(if $(WERROR),-Werror)
HARDEN   := -Wl,-z,relro,-z,now
PACKAGES := $(if $(SQLITE),,sqlite3) libzstd libxxhash libcjson zlib blosc liblz4 liblzma libzip libarchive
BZ2_LIBS := -lbz2 # Debian has no bzip2.pc
# For the converters (src/convert): nothing else is linked with these.
CONVERT_PACKAGES := netcdf hdf5

# Asked for at the first use and then kept: `make setup` may have to install
# pkg-config before. Headers of other people's libraries are system headers.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(patsubst -I%,-isystem%,$$(shell \
    pkg-config --cflags $(PACKAGES) $(CONVERT_PACKAGES); \
    pkg-config --cflags liblzf 2>/dev/null; \
    pkg-config --cflags libcurl 2>/dev/null)))$(PKG_CFLAGS)
PKG_LIBS   = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PACKAGES)))$(PKG_LIBS)
SANDBOX_LIBS = $(eval SANDBOX_LIBS := $$(shell pkg-config --libs libseccomp 2>/dev/null))$(SANDBOX_LIBS)
# The library loads libzfp when it needs it. BUNDLE=1 links it all the same, for a tool that gathers what
# a program is linked with (python/wheel.sh).
ZFP_LIBS = $(if $(BUNDLE),$(shell echo '\#include <zfp.h>' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && \
    echo -Wl,--push-state,--no-as-needed -lzfp -Wl,--pop-state))
LZF_LIBS = $(eval LZF_LIBS := $$(shell pkg-config --libs liblzf 2>/dev/null))$(LZF_LIBS)
CHECK_LIBS = $(eval CHECK_LIBS := $$(shell pkg-config --libs check))$(CHECK_LIBS)

COMPILE = $(CC) -std=c17 -D_GNU_SOURCE $(WARNINGS) -fPIC -fvisibility=hidden -pthread \
          -Ibuild/gen $(if $(SQLITE),-isystem$(SQLITE)) $(PKG_CFLAGS) \
          $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(MODE)) -MMD -MP
LINK    = $(CC) $(CFLAGS) $(FLAGS_$(MODE)) -pthread $(HARDEN) -Wl,--as-needed $(LDFLAGS)
ifeq ($(MODE),static)
# c-blosc's archive needs snappy, which is in C++.
LINK_COMMAND = $(LINK) -static -s -Wl,--gc-sections -Lbuild/static/lib
LIBS = -Wl,--start-group $(PKG_LIBS) $(BZ2_LIBS) -lsnappy -lstdc++ -lm -Wl,--end-group
else
# -rdynamic: plug-ins find the library's functions in the program that loads them.
LINK_COMMAND = $(LINK) -rdynamic
LIBS = $(PKG_LIBS) $(BZ2_LIBS) $(ZFP_LIBS) -lm -ldl
endif

# Objects with other flags go to another folder, so they never mix.
quote    = '$(subst ','\'',$(1))'
FLAGS_ID := $(firstword $(shell printf '%s' $(call quote,$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) \
    $(FLAGS_$(MODE)) $(WARNINGS) $(SQLITE)) | cksum))
OBJ := build/obj-$(MODE)-$(FLAGS_ID)
OUT := $(if $(filter release,$(MODE)),build,build/$(MODE))

Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

# ---- sources and objects ----------------------------------------------------

objects   = $(patsubst %.c,$(OBJ)/%.o,$(wildcard $(1)))
LIB_OBJS   := $(filter-out $(OBJ)/src/convert/% $(OBJ)/src/serve/%,$(call objects,src/*/*.c src/*/*/*.c codecs/*.c codecs/lib/*.c)) $(if $(SQLITE),$(OBJ)/sqlite3.o)
# src/convert/NAME with a NAME_main.c is the program libexec/breccia/NAME, linked with its own library.
CONVERTERS := $(patsubst src/convert/%/,%,$(dir $(wildcard src/convert/*/*_main.c)))
CONVERT_OBJS := $(filter-out %_main.o,$(call objects,src/convert/*/*.c))
# src/serve is the program libexec/breccia/serve, where libmicrohttpd is; tests have all of it but what needs that.
SERVE_OBJS := $(call objects,src/serve/*.c)
SERVE_MHD  := $(call objects,src/serve/http.c src/serve/serve_main.c)
SERVE       = $(eval SERVE := $$(shell pkg-config --exists libmicrohttpd 2>/dev/null && echo serve))$(SERVE)
LIBEXECS    = $(CONVERTERS) $(SERVE)
CLI_OBJS   := $(call objects,cli/*.c cli/cmd/*.c)
KIT_MAIN   := $(call objects,tests/kit/kit_main.c tests/kit/kit_alloc.c)
KIT_OBJS   := $(KIT_MAIN) $(call objects,tests/kit/codec_kit.c tests/kit/codec_lists.c tests/kit/type_kit.c tests/kit/backend_kit.c)
FUZZ_MAIN  := $(call objects,tests/fuzz/main.c)
FUZZ_KIT   := $(call objects,tests/kit/row_edits.c tests/kit/own_rows.c tests/kit/reserved.c tests/kit/battery.c tests/kit/sample_repo.c)
FUZZ_OBJS  := $(filter-out $(FUZZ_MAIN),$(call objects,tests/fuzz/*.c))
TEST_OBJS  := $(filter-out $(KIT_MAIN),$(call objects,tests/*/test_*.c tests/kit/*.c tests/main.c)) \
              $(FUZZ_OBJS) $(CONVERT_OBJS) $(filter-out $(SERVE_MHD),$(SERVE_OBJS))
PLUGIN_OBJS := $(call objects,tests/plugins/*.c)
TEST_PLUGINS = $(patsubst $(OBJ)/%.o,$(OUT)/%.so,$(PLUGIN_OBJS))
OOM_OBJS   := $(call objects,tests/oom/*.c)
BENCH_OBJS := $(call objects,tests/bench/*.c tests/kit/s3_server.c)
SCHEMA     := $(patsubst schema/%.sql,build/gen/%.sql.h,$(wildcard schema/*.sql))
PUBLIC     := src/breccia.h src/breccia_types.h src/breccia_sel.h src/breccia_json.h src/breccia_codec.h src/breccia_backend.h src/breccia_pipeline.h src/breccia_buffer.h

# From the three numbers in breccia_types.h.
version_part = $(shell awk '$$2 == "BRC_VERSION_$(1)" { print $$3 }' src/breccia_types.h)
SO_MAJOR := $(call version_part,MAJOR)
VERSION  := $(SO_MAJOR).$(call version_part,MINOR).$(call version_part,PATCH)

.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: all help setup lint-setup dev-setup test test-long test-backend asan tsan valgrind oom flips kills bits model commits soak mutants mutants-compile kit bench bench-against demo conformance interop s3-test serve-test page-test lint objects \
        serve python-parts python-setup python-test wheel bench-peers \
        install package static uninstall clean FORCE

all: build/breccia build/libbreccia.a build/libbreccia.so $(CONVERTERS:%=build/libexec/breccia/%) serve ## the command and the libraries (the default)

# The files that the Python package is built of. SETUP tells its build to install nothing.
python-parts: build/libbreccia.a build/credentials.o build/breccia $(CONVERTERS:%=build/libexec/breccia/%) serve

help: ## this list
	@awk -F ' ## ' '/^[a-z-]+:.* ## / { sub(/:.*/, "", $$1); printf "make %-12s %s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))
	@sed -n 's/^#   \([A-Z][A-Z ,=]*[ A-Z]\)/    \1/p' $(firstword $(MAKEFILE_LIST))

setup: ## installs the libraries that are missing (Debian: apt)
	@CC='$(CC)' sh .ci/setup.sh $(SETUP)
lint-setup:
	@CC='$(CC)' sh .ci/setup.sh --lint
dev-setup:
	@CC='$(CC)' sh .ci/setup.sh --dev

# ---- compiling --------------------------------------------------------------

# schema/NAME.sql becomes brc_sql_NAME in build/gen/NAME.sql.h, byte for byte:
# SQLite keeps the text, comments and all, in every file that it makes.
build/gen/%.sql.h: schema/%.sql Makefile
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	@if [ -n "$$(tail -c 1 $<)" ]; then echo "$<: no newline at the end" >&2; exit 1; fi
	@{ printf '/* From %s. */\n' $<; \
	   printf 'static const char brc_sql_%s[] =\n' $(subst -,_,$*); \
	   sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$$/\\n"/' $<; \
	   echo '    "";'; } >$@

# Where converters are installed: changes with PREFIX, and one object with it.
LIBEXEC := build/gen/libexec_path.h
$(LIBEXEC): FORCE
	@mkdir -p $(@D)
	@echo '#define BRC_LIBEXEC "$(PREFIX)/libexec/breccia"' | cmp -s - $@ || \
	    echo '#define BRC_LIBEXEC "$(PREFIX)/libexec/breccia"' >$@
$(OBJ)/src/xfer/foreign/libexec_default.o: $(LIBEXEC)

# The files of src/serve/page become page_file_index, _style and _app, the scripts one after the other, all
# without indentation and comments of one line; page_files_sum changes with them.
PAGE_SCRIPTS := $(patsubst %,src/serve/page/%.js,ask meaning colours view array versions page)
PAGE_FILES   := src/serve/page/index.html src/serve/page/style.css $(PAGE_SCRIPTS)
PAGE         := build/gen/page_files.h
$(PAGE): $(PAGE_FILES) Makefile
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	@{ part() { \
	       printf 'static const char page_file_%s[] =\n' $$1; shift; \
	       sed -e 's/^ *//' -e '/^\/\*.*\*\/$$/d' -e '/^$$/d' -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$$/\\n"/' "$$@"; \
	       echo '    "";'; \
	   }; \
	   echo '/* From src/serve/page. */'; \
	   part index src/serve/page/index.html; part style src/serve/page/style.css; part app $(PAGE_SCRIPTS); \
	   printf 'static const char page_files_sum[] = "%s";\n' $$(cat $(PAGE_FILES) | cksum | cut -d ' ' -f 1); } >$@
$(OBJ)/src/serve/page.o: $(PAGE)

# The SQL of src/store, for a test of its plans; check.c looks at every row.
STATEMENTS := build/gen/sql_statements.h
$(STATEMENTS): $(filter-out src/store/check.c src/store/copy_tables.c,$(wildcard src/store/*.c)) tests/kit/statements.awk Makefile
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	@awk -f tests/kit/statements.awk $(filter %.c,$^) >$@
$(OBJ)/tests/store/test_statements.o: $(STATEMENTS)

$(OBJ)/%.o: %.c | setup $(SCHEMA)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -c $< -o $@

# NOMUTEX is enough: one connection belongs to one thread at a time. DBSTAT is for tests.
$(OBJ)/sqlite3.o: $(SQLITE)/sqlite3.c Makefile | setup
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -w -fno-sanitize=undefined -DSQLITE_THREADSAFE=2 -DSQLITE_DEFAULT_MEMSTATUS=0 \
	    -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_DQS=0 -DSQLITE_ENABLE_DBSTAT_VTAB -c $< -o $@

-include $(patsubst %.o,%.d,$(LIB_OBJS) $(CONVERT_OBJS) $(call objects,src/convert/*/*_main.c) $(SERVE_OBJS) $(CLI_OBJS) $(TEST_OBJS) $(OOM_OBJS) $(BENCH_OBJS) \
    $(KIT_OBJS) $(PLUGIN_OBJS) $(FUZZ_MAIN))

# ---- linking ----------------------------------------------------------------

# Changes when a source file comes or goes: then what is linked is stale.
$(OBJ)/sources: FORCE
	@mkdir -p $(@D)
	@echo $(LIB_OBJS) $(CLI_OBJS) $(TEST_OBJS) | cmp -s - $@ || \
	    echo $(LIB_OBJS) $(CLI_OBJS) $(TEST_OBJS) >$@

$(OBJ)/libbreccia.a: $(LIB_OBJS) $(OBJ)/sources
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJS)

$(OBJ)/libbreccia.so: $(LIB_OBJS) $(OBJ)/sources
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,libbreccia.so.$(SO_MAJOR) -Wl,--no-undefined \
	    -o $@ $(LIB_OBJS) $(LIBS)

$(OBJ)/breccia: $(CLI_OBJS) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK_COMMAND) -o $@ $^ $(LIBS)

# Each has the part that all of them share, and its own.
.SECONDEXPANSION:
.PRECIOUS: $(OBJ)/convert_%
CONVERT_LIBS_hdf5 = $(eval CONVERT_LIBS_hdf5 := $$(shell pkg-config --libs hdf5) -lhdf5_hl)$(CONVERT_LIBS_hdf5)
CONVERT_LIBS_netcdf = $(eval CONVERT_LIBS_netcdf := $$(shell pkg-config --libs netcdf))$(CONVERT_LIBS_netcdf)
CONVERT_LIBS = $(CONVERT_LIBS_hdf5) $(CONVERT_LIBS_netcdf) $(SANDBOX_LIBS) $(LZF_LIBS)
$(OBJ)/convert_%: $$(call objects,src/convert/$$*/*.c src/convert/lib/*.c) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(CONVERT_LIBS_$*) $(SANDBOX_LIBS) $(LZF_LIBS) $(LIBS)

# libmicrohttpd may come with `setup`, so it is asked for when that is done.
SERVE_LIBS = $(eval SERVE_LIBS := $$(shell pkg-config --libs libmicrohttpd))$(SERVE_LIBS)
serve: $(OBJ)/libbreccia.a $(OBJ)/cli/credentials.o $(filter-out $(SERVE_MHD),$(SERVE_OBJS)) | setup
	$(if $(SERVE),@$(MAKE) --no-print-directory $(OUT)/libexec/breccia/serve,)
$(OBJ)/serve: $(SERVE_OBJS) $(OBJ)/cli/credentials.o $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(SERVE_LIBS) $(LIBS)

# With the command's parts, so that tests can see them.
$(OBJ)/run: $(TEST_OBJS) $(filter-out $(OBJ)/cli/main.o,$(CLI_OBJS)) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -rdynamic -o $@ $^ $(CHECK_LIBS) $(CONVERT_LIBS) $(LIBS)

$(OBJ)/codec_kit: $(KIT_OBJS) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -rdynamic -o $@ $^ $(LIBS)

# Plug-ins are linked with nothing of ours.
.SECONDARY: $(PLUGIN_OBJS) $(PLUGIN_OBJS:.o=.so)
# docs/extending is compiled as a stranger compiles it, against installed headers.
$(PLUGIN_OBJS): CPPFLAGS += -Isrc

# Python does not have the libraries by which those of nvCOMP decode.
$(OBJ)/tests/plugins/nvcomp%.so: PLUGIN_LIBS := -lzstd -llz4 -lz
$(OBJ)/tests/plugins/%.so: $(OBJ)/tests/plugins/%.o
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -o $@ $< $(PLUGIN_LIBS)

$(OBJ)/oom: $(OOM_OBJS) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(OBJ)/fuzz: $(FUZZ_MAIN) $(FUZZ_OBJS) $(FUZZ_KIT) $(filter-out $(OBJ)/cli/main.o,$(CLI_OBJS)) $(CONVERT_OBJS) $(filter-out $(SERVE_MHD),$(SERVE_OBJS)) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(CONVERT_LIBS) $(LIBS)

$(OBJ)/bench: $(BENCH_OBJS) $(OBJ)/libbreccia.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Under their own names: hard links, so that flags can be switched back and forth.
publish = @mkdir -p $(@D); [ $< -ef $@ ] || ln -f $< $@ 2>/dev/null || cp -f $< $@
$(OUT)/breccia: $(OBJ)/breccia FORCE; $(publish)
$(OUT)/libexec/breccia/%: $(OBJ)/convert_% FORCE; $(publish)
$(OUT)/libexec/breccia/serve: $(OBJ)/serve FORCE; $(publish)
$(OUT)/bench: $(OBJ)/bench FORCE; $(publish)
$(OUT)/libbreccia.a: $(OBJ)/libbreccia.a FORCE; $(publish)
$(OUT)/credentials.o: $(OBJ)/cli/credentials.o FORCE; $(publish)
$(OUT)/libbreccia.so: $(OBJ)/libbreccia.so FORCE
	$(publish)
	@ln -sf libbreccia.so $(@D)/libbreccia.so.$(SO_MAJOR)
$(OUT)/tests/run: $(OBJ)/run FORCE; $(publish)
$(OUT)/tests/plugins/%.so: $(OBJ)/tests/plugins/%.so FORCE; $(publish)
$(OUT)/tests/oom: $(OBJ)/oom FORCE; $(publish)
$(OUT)/codec_kit: $(OBJ)/codec_kit FORCE; $(publish)

# ---- testing ----------------------------------------------------------------

TEST_PARTS = $(OUT)/tests/run $(TEST_PLUGINS) $(OUT)/breccia $(CONVERTERS:%=$(OUT)/libexec/breccia/%) serve
test: $(TEST_PARTS) ## the C tests and the command line's; the last line has the total
	@TEST='$(TEST)' SKIP='$(SKIP)' sh tests/all.sh $(OUT)/tests/run $(OUT)/breccia

# Suites whose tests hold wherever the chunks of a new repository lie.
BACKEND_SUITES := algebra hangar long_commit merge merge_concat merge_draft merge_elements merge_faults merge_onto \
    merge_structure crosswise pick pick_draft rebase rebase_draft rebase_others replay scenarios undo draft_log \
    children children_join children_model drafts adopt backup expire expire_open expunge gc gc_faults gc_pauses gc_roots gc_steps pins repair \
    closure export npy_exchange array_stream batch_reads bulk chunk_boxes diff element_diff flows grid_model \
    key_edges key_etags key_lists key_model node_moves padding partial_writes places readback
BACKEND := pack
test-backend: $(TEST_PARTS) ## many suites again, with the chunks of new repositories in the backend BACKEND (pack, s3, or JSON)
	@BRECCIA_BACKEND=$(call quote,$(BACKEND)) TEST='$(or $(TEST),$(BACKEND_SUITES))' SKIP=cli \
	    sh tests/all.sh $(OUT)/tests/run $(OUT)/breccia

test-long: $(TEST_PARTS) ## what `make test` takes a sample of: every moment, byte and input
	@LONG=1 TEST='$(TEST)' sh tests/all.sh $(OUT)/tests/run $(OUT)/breccia

# A finding ends a process by a signal, so that one in a converter is the crash that it would be.
# To start a sanitizer's converter takes three times as long as to fork one: thousands are forked.
# A process looks for leaks when it ends, which takes longer than most tests: one a suite, not one a test.
asan: ## all tests under the address and undefined-behaviour sanitizers
	@BRECCIA_FORK=1 CK_FORK=no \
	 ASAN_OPTIONS=abort_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1 \
	 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(MAKE) --no-print-directory MODE=asan test

# The thread sanitizer needs a fixed address layout on some kernels.
tsan: ## all tests under the thread sanitizer
	@wrap=; setarch -R true 2>/dev/null && wrap='setarch -R'; \
	 TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 WRAP="$$wrap" \
	    $(MAKE) --no-print-directory MODE=tsan test

# On the objects of `make`. What Check itself still holds at the end is reachable; ours would be lost.
LEAKS    := definite,indirect,possible
VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=$(LEAKS) \
            --errors-for-leak-kinds=$(LEAKS)
valgrind: dev-setup ## all tests under valgrind's memory and leak checks
	@WRAP='$(VALGRIND)' $(MAKE) --no-print-directory test

oom: $(if $(OOM_OBJS),$(OUT)/tests/oom) ## makes every allocation fail in turn
	$(if $(OOM_OBJS),$(WRAP) $(OUT)/tests/oom,@echo 'there is no tests/oom')

# libFuzzer is clang's: MODE=fuzz has objects of its own. The program is one, and its name
# says which harness it runs.
FUZZ_CC   := $(if $(findstring clang,$(CC)),$(CC),clang)
HARNESSES := $(shell sed -n 's/^HARNESS(\(.*\))$$/\1/p' $(wildcard tests/fuzz/harnesses.h) /dev/null)
fuzz: ## fuzzes every parser, or FUZZ=NAME; SECONDS each (60) or RUNS, JOBS at a time (2), SEED
	@CC='$(FUZZ_CC)' sh .ci/setup.sh --fuzz
	@$(MAKE) --no-print-directory MODE=fuzz CC='$(FUZZ_CC)' fuzz-programs
	@FUZZ='$(FUZZ)' FUZZ_SECONDS='$(SECONDS)' FUZZ_SEED='$(SEED)' FUZZ_RUNS='$(RUNS)' JOBS='$(JOBS)' sh tests/fuzz/run build/fuzz
fuzz-programs: $(HARNESSES:%=$(OUT)/fuzz_%)
$(OUT)/fuzz_%: $(OBJ)/fuzz FORCE; $(publish)

converters: $(CONVERTERS:%=$(OUT)/libexec/breccia/%)

# The suite damage has a few of these.
flips: $(OUT)/tests/run converters ## imports damaged files: FLIPS of each kind (20000), SEED, JOBS at once
	@export CK_RUN_CASE=flips BRECCIA_FLIPS='$(or $(FLIPS),20000)' BRECCIA_SEED='$(or $(SEED),1)' \
	    BRECCIA_PARTS='$(or $(JOBS),1)' BRECCIA_KIND='$(KIND)' \
	    $(if $(FORK),BRECCIA_FORK=1); \
	seq 0 $$((BRECCIA_PARTS - 1)) | \
	    xargs -P "$$BRECCIA_PARTS" -I @ env BRECCIA_PART=@ $(OUT)/tests/run damage

kills: $(OUT)/tests/run ## kills a process at every write, sync and deletion of the calls that change a file
	@LONG=1 TEST='killed gc_faults merge_faults backend_killed' sh tests/all.sh $(OUT)/tests/run $(OUT)/breccia

bits: $(OUT)/tests/run ## flips every bit of the rows that no id covers
	@CK_RUN_SUITE=draft_flips BRECCIA_LONG=1 $(OUT)/tests/run

model: $(OUT)/tests/run ## four processes at work on one file, against a model: STEPS of all of them (10000), SEED
	@CK_RUN_SUITE=many BRECCIA_STEPS='$(or $(STEPS),10000)' BRECCIA_SEED='$(or $(SEED),1)' $(OUT)/tests/run

commits: $(OUT)/tests/run ## sixteen processes commit to one chunk: COMMITS of each (100)
	@CK_RUN_CASE=crowd BRECCIA_COMMITS='$(or $(COMMITS),100)' $(OUT)/tests/run committers

soak: $(OUT)/tests/run ## random histories against an oracle: STEPS of them (1000000), SEED
	@CK_RUN_SUITE=history_model BRECCIA_STEPS='$(or $(STEPS),1000000)' BRECCIA_SEED='$(or $(SEED),1)' $(OUT)/tests/run

mutants: ## puts faults into a copy of the sources, one by one, and sees whether the tests notice
	@CC='$(CC)' MUTANTS='$(MUTANTS)' SEED='$(SEED)' ONLY='$(ONLY)' JOBS='$(JOBS)' \
	    python3 tests/mutants/run.py
mutants-compile: WARNINGS :=
mutants-compile: setup $(SCHEMA) $(LIBEXEC) $(PAGE)
	@COMPILE=$(call quote,$(filter-out -MMD -MP,$(COMPILE))) MUTANTS='$(MUTANTS)' SEED='$(SEED)' ONLY='$(ONLY)' JOBS='$(JOBS)' \
	    python3 tests/mutants/run.py --compile

kit: $(OUT)/codec_kit ## tests the codecs, data types and backends of a plug-in, PLUGIN=./NAME.so, or the built-in ones
	$(WRAP) $(OUT)/codec_kit $(PLUGIN)

bench: $(if $(BENCH_OBJS),$(OUT)/bench) $(if $(filter serve,$(BENCH)),all) ## the benchmarks; BENCH names one; BENCH=serve needs nginx and wrk
	$(if $(filter serve,$(BENCH)),@sh tests/bench/serve.sh $(OUT),$(if $(BENCH_OBJS),$(OUT)/bench $(BENCH),@echo 'there is no tests/bench'))

bench-against: $(OUT)/bench ## the benchmarks beside those of a commit, REV=COMMIT; BENCH, ROUNDS (5), BOUND (1.10), OPTIONS of bench
	@BENCH=$(call quote,$(BENCH)) sh tests/bench/against.sh $(abspath $(OUT)/bench) $(call quote,$(REV)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(BOUND),--bound $(BOUND)) $(if $(DIR),--dir $(call quote,$(DIR))) \
	    $(if $(OPTIONS),--options=$(call quote,$(OPTIONS)))

# Compiled as a user would, against the archive.
build/demo/reaction_diffusion: docs/demo/reaction_diffusion.c build/libbreccia.a $(PUBLIC)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c99 $(WARNINGS) -Isrc $(CFLAGS) $< build/libbreccia.a $(LDFLAGS) -pthread \
	    $(LIBS) -o $@

demo: all build/demo/reaction_diffusion ## a walk through the command; DATA=PATH imports its arrays from there
	@DATA=$(call quote,$(DATA)) sh docs/demo.sh build/breccia

# Both need Python; interop fetches its peers with pip and npm. See the scripts.
conformance: build/breccia ## what other implementations wrote, read with the command: a table
	@sh tests/conformance/run.sh build/breccia
interop: build/breccia build/libbreccia.so build/tests/plugins/dirs.so ## arrays go both ways between breccia and its peers; INTEROP_COUNT, INTEROP_SEED
	@sh tests/interop/run_reader.sh build/breccia
	@sh tests/interop/run_store.sh build/breccia
	@sh tests/interop/run_peers.sh build/breccia

s3-test: build/breccia build/tests/run ## the backend s3 on servers of others, moto and versitygw, which pip and go fetch; S3_SEED, S3_WRITERS, S3_SUITES
	@sh tests/s3/run.sh build

serve-test: all ## what the server serves, read by zarr-python, TensorStore, zarrita, neuroglancer, GDAL and rclone, which pip and npm fetch or apt has; VIZARR=FOLDER, as built
	@VIZARR='$(VIZARR)' sh tests/serve/clients/run.sh build

page-test: all ## the page in Chromium, by pointer and by keys, with axe, which pip and npm fetch; SHOTS=FOLDER for its pictures
	@SHOTS='$(SHOTS)' sh tests/page/run.sh build

# ---- Python -----------------------------------------------------------------

python-setup:
	@CC='$(CC)' sh .ci/setup.sh --python

python-test: python-setup ## the Python package's tests, in environments of their own; PYTHONS, TORCH=1, LANES
	@PYTHONS=$(call quote,$(PYTHONS)) TORCH='$(TORCH)' LANES='$(LANES)' sh python/tests/run.sh

wheel: python-setup ## a wheel that carries its libraries, tried in bare environments; PYTHON, PYTHONS, SQLITE, ZSTD, SYSTEM=1
	@PYTHON=$(call quote,$(PYTHON)) PYTHONS=$(call quote,$(PYTHONS)) SQLITE='$(SQLITE)' ZSTD='$(ZSTD)' SYSTEM='$(SYSTEM)' \
	    sh python/wheel.sh

bench-peers: python-setup ## breccia beside other libraries; ROWS, PEERS, ROUNDS, SIZE, QUICK=1, THREADS, DIR, SHARED, TORCH=1, LIST=1: see python/bench/run.sh
	@ROWS=$(call quote,$(ROWS)) PEERS=$(call quote,$(PEERS)) ROUNDS='$(ROUNDS)' SIZE='$(SIZE)' QUICK='$(QUICK)' THREADS='$(THREADS)' \
	    DIR=$(call quote,$(DIR)) SHARED=$(call quote,$(SHARED)) TORCH='$(TORCH)' LIST='$(LIST)' sh python/bench/run.sh

# tests/lint/run builds them: it wants no warning, and reads what they use.
objects: $(patsubst %.c,$(OBJ)/%.o,$(shell find src codecs cli tests -name '*.c'))
	@echo $(OBJ)

lint: lint-setup $(SCHEMA) $(LIBEXEC) $(STATEMENTS) $(PAGE) ## layers, sizes, names, banned functions, headers, warnings, paths in docs
	@CC='$(CC)' sh tests/lint/selftest
	@CC='$(CC)' PKG_CFLAGS='$(PKG_CFLAGS)' sh tests/lint/run

# ---- installing -------------------------------------------------------------

BIN_DIR     = $(DESTDIR)$(PREFIX)/bin
INCLUDE_DIR = $(DESTDIR)$(PREFIX)/include
LIB_DIR     = $(DESTDIR)$(PREFIX)/lib
LIBEXEC_DIR = $(DESTDIR)$(PREFIX)/libexec/breccia
MAN_DIR     = $(DESTDIR)$(PREFIX)/share/man/man1
BASH_WORDS  = $(DESTDIR)$(PREFIX)/share/bash-completion/completions/breccia
ZSH_WORDS   = $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_breccia
FISH_WORDS  = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/breccia.fish
INSTALLED   = $(BIN_DIR)/breccia $(LIBEXECS:%=$(LIBEXEC_DIR)/%) $(addprefix $(INCLUDE_DIR)/,$(notdir $(PUBLIC))) \
              $(addprefix $(LIB_DIR)/libbreccia,.a .so .so.$(SO_MAJOR) .so.$(VERSION)) \
              $(LIB_DIR)/pkgconfig/breccia.pc $(BASH_WORDS) $(ZSH_WORDS) $(FISH_WORDS)

# Debian's libarchive.pc names libraries that only a static libarchive needs, and which are not
# installed with it.
install: all ## under PREFIX (/usr/local), below DESTDIR where that is set
	install -d $(BIN_DIR) $(INCLUDE_DIR) $(LIB_DIR)/pkgconfig
	install -m 755 build/breccia $(BIN_DIR)
	for name in $(LIBEXECS); do \
	    install -D -m 755 build/libexec/breccia/$$name $(LIBEXEC_DIR)/$$name || exit 1; done
	install -d $(MAN_DIR) $(dir $(BASH_WORDS) $(ZSH_WORDS) $(FISH_WORDS))
	build/breccia help --man >$(MAN_DIR)/breccia.1
	build/breccia completion words -- '' | cut -f 1 | while read -r name; do \
	    build/breccia help --man $$name >$(MAN_DIR)/breccia-$$name.1 || exit 1; done
	build/breccia completion bash >$(BASH_WORDS)
	build/breccia completion zsh >$(ZSH_WORDS)
	build/breccia completion fish >$(FISH_WORDS)
	install -m 644 $(PUBLIC) $(INCLUDE_DIR)
	install -m 644 build/libbreccia.a $(LIB_DIR)
	install -m 755 build/libbreccia.so $(LIB_DIR)/libbreccia.so.$(VERSION)
	ln -sf libbreccia.so.$(VERSION) $(LIB_DIR)/libbreccia.so.$(SO_MAJOR)
	ln -sf libbreccia.so.$(SO_MAJOR) $(LIB_DIR)/libbreccia.so
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: breccia' 'Description: Versioned Zarr arrays in one SQLite file' \
	    'Version: $(VERSION)' 'Requires.private: $(strip $(filter-out libarchive,$(PACKAGES)))' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lbreccia' \
	    'Libs.private: -larchive $(strip $(BZ2_LIBS)) -pthread -lm -ldl' >$(LIB_DIR)/pkgconfig/breccia.pc

package: ## Debian packages of the library, its headers and the command, in build/deb
	@sh .ci/package.sh

static: ## the command alone, without converters, linked statically: build/static/breccia
	+@CC='$(CC)' sh .ci/static.sh

uninstall: ## removes what install put there
	rm -f $(INSTALLED) $(MAN_DIR)/breccia.1 $(MAN_DIR)/breccia-*.1
	@rmdir $(LIB_DIR)/pkgconfig $(LIBEXEC_DIR) 2>/dev/null || :

clean: ## removes build/
	rm -rf build
