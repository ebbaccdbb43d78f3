# SPDX-License-Identifier: MIT

# By CPack, between the installation of the components to CPACK_TEMPORARY_DIRECTORY and the packages: programs, without scripts, and shared
# libraries lose their tables of symbols, manual pages are compressed, and every package gets its copyright and its
# changelogs: that of the project and, in the form that Debian's policy asks for, that of the packages.
cmake_policy(VERSION 3.22)  # CPack sets none
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where it is set
set(debian_changelog ${CPACK_TEMPORARY_DIRECTORY}/changelog.Debian)
file(WRITE ${debian_changelog} "\
${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}, whose changes are in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} COMPONENT)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  file(GLOB_RECURSE binaries ${root}/bin/* ${root}/*/libsar_c.so.*)
  foreach(binary ${binaries})
    file(READ ${binary} magic LIMIT 4 HEX)
    if(magic STREQUAL "7f454c46" AND NOT IS_SYMLINK ${binary})
      execute_process(COMMAND strip --strip-unneeded --remove-section=.comment ${binary} COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()

  file(GLOB pages ${root}/share/man/man1/*.1)
  foreach(page ${pages})
    execute_process(COMMAND gzip -9 --no-name ${page} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()

  set(doc ${root}/share/doc/${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
  file(MAKE_DIRECTORY ${doc})
  file(READ ${CPACK_SAR_SOURCE_DIR}/LICENSE license)
  file(READ ${CPACK_SAR_SOURCE_DIR}/NOTICE notice)
  file(WRITE ${doc}/copyright "${license}\n${notice}")
  execute_process(COMMAND gzip -9 --no-name --stdout ${CPACK_SAR_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${doc}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip -9 --no-name --stdout ${debian_changelog} OUTPUT_FILE ${doc}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# The reference of the API, where Doxygen is found.
find_program(SAR_DOXYGEN doxygen)
if(SAR_DOXYGEN AND "sar_doc" IN_LIST CPACK_COMPONENTS_ALL)
  set(reference ${CPACK_TEMPORARY_DIRECTORY}/reference)
  execute_process(COMMAND ${CPACK_SAR_SOURCE_DIR}/docs/reference.sh ${reference} COMMAND_ERROR_IS_FATAL ANY)
  file(RENAME ${reference}/html ${CPACK_TEMPORARY_DIRECTORY}/sar_doc/usr/share/doc/${CPACK_PACKAGE_NAME}/reference)
  file(REMOVE_RECURSE ${reference})
endif()
file(REMOVE ${debian_changelog})
